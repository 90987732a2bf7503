/** The menu in which a robot is given faults, beside the robot or, on a small screen, at the bottom. */

export const PARTS = {
  proximity: ["Proximity sensors", {none: "work", min: "read 0", max: "read 1", random: "random"}],
  ground: ["Ground sensors", {none: "work", min: "all black", max: "all white", random: "random"}],
  wheels: ["Wheels", {none: "work", left: "left slow", right: "right slow", both: "both slow"}],
  software: ["Software", {none: "works", nest: "mad at the nest", food: "stuck on food"}],
};

export class FaultMenu {
  #robot = -1;
  #opener = null;

  /** `change(robot, part, fault)` and `repair(robot)` are called when something is chosen. */
  constructor(dialog, {change, repair}) {
    this.dialog = dialog;
    this.title = dialog.querySelector("h2");
    const parts = dialog.querySelector("#menu-parts");
    for (const [part, [words, faults]] of Object.entries(PARTS)) {
      const group = document.createElement("fieldset");
      group.className = "choice";
      const legend = document.createElement("legend");
      legend.textContent = words;
      group.append(legend);
      for (const [fault, text] of Object.entries(faults)) {
        const label = document.createElement("label");
        const input = document.createElement("input");
        input.type = "radio";
        input.name = `fault-${part}`;
        input.value = fault;
        input.addEventListener("change", () => change(this.#robot, part, fault));
        label.append(input, ` ${text}`);
        group.append(label);
      }
      parts.append(group);
    }
    dialog.querySelector("#menu-repair").addEventListener("click", () => repair(this.#robot));
    dialog.querySelector("#menu-close").addEventListener("click", () => this.close());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && dialog.open) this.close();
    });
    document.addEventListener("pointerdown", (event) => {
      if (dialog.open && !dialog.contains(event.target)) this.close(false);
    });
  }

  get isOpen() {
    return this.dialog.open;
  }

  /** Open it for a robot; near a point of the screen if one is given. */
  open(robot, faults, point = null) {
    this.#robot = robot;
    this.title.textContent = `Robot ${robot}`;
    if (!this.dialog.open) {
      this.#opener = document.activeElement;
      this.dialog.show();
    }
    this.update(faults);
    this.#place(point);
    this.dialog.querySelector("input:checked")?.focus({preventScroll: true});
  }

  #place(point) {
    const {style} = this.dialog;
    style.left = style.top = "";
    const small = matchMedia("(max-width: 640px)").matches;
    this.dialog.classList.toggle("sheet", small);
    if (small) return;
    const {width, height} = this.dialog.getBoundingClientRect();
    const [x, y] = point ?? [window.innerWidth / 2, window.innerHeight / 2];
    const left = x + 24 + width < window.innerWidth ? x + 24 : Math.max(8, x - 24 - width);
    const top = Math.min(Math.max(8, y - height / 2), Math.max(8, window.innerHeight - height - 8));
    style.left = `${left}px`;
    style.top = `${top}px`;
  }

  /** Show the faults that a robot has. */
  update(faults) {
    for (const [part, fault] of Object.entries(faults ?? {})) {
      const input = this.dialog.querySelector(`input[name=fault-${part}][value=${fault}]`);
      if (input && !input.checked) input.checked = true;
    }
  }

  close(refocus = true) {
    if (!this.dialog.open) return;
    this.dialog.close();
    // Else the hidden input would keep the focus, and the next key, until the page is drawn again.
    if (this.dialog.contains(document.activeElement)) document.activeElement.blur();
    if (refocus) this.#opener?.focus({preventScroll: true});
  }

  get robot() {
    return this.#robot;
  }
}
