/** Single keys that do what a button does; not while something is typed or chosen by the same keys. */

const OWN_KEYS = "input:not([type=checkbox]):not([type=range]), select, textarea, dialog input";

/** `actions` maps keys, as in KeyboardEvent.key in lower case, to functions; `areOn()` says whether to listen. */
export function listen(actions, areOn) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const {target} = event;
    if (target.closest?.(OWN_KEYS) || document.querySelector("#help[open]")) return;
    if (event.key === " " && target.closest?.("button, summary, a, input")) return;
    if (event.repeat && !"+-=.np".includes(event.key)) return; // a key that is held down
    const action = actions[event.key.toLowerCase()];
    if (!action || (!areOn() && event.key !== "?")) return;
    event.preventDefault();
    action(event);
  });
}
