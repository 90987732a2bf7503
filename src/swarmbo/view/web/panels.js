/** The parts of the page that are words: robots, food, levels. They change only what differs. */

export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const items = (value) => (Number.isFinite(value) ? value.toFixed(2) : "–");

/** What a model expects: a Gaussian process knows no bounds, but nobody delivers less than nothing. */
export const expectation = (value) => (Number.isFinite(value) ? items(Math.max(value, 0)) : "–");

function make(name, parent, properties = {}) {
  const element = Object.assign(document.createElement(name), properties);
  parent.append(element);
  return element;
}

/** A row per robot: what it runs, expects and shares. */
export class TeamTable {
  #rows = [];

  constructor(body, choose) {
    this.body = body;
    this.choose = choose;
  }

  draw(state, selected, words) {
    if (this.#rows.length !== state.team.length) this.#build(state.team.length);
    state.team.forEach((robot, number) => {
      const row = this.#rows[number];
      row.line.classList.toggle("selected", number === selected);
      row.button.setAttribute("aria-pressed", String(number === selected));
      say(row.fault, robot.fault === "none" ? "" : robot.fault);
      say(row.runs, robot.row === null ? "no controller" : words(robot.row).replace(/(?<=\d) (?=\d)/g, "\u00a0"));
      const spread = Number.isFinite(robot.deviation) ? ` ± ${robot.deviation.toFixed(2)}` : "";
      say(row.expects, Number.isFinite(robot.expects) ? expectation(robot.expects) + spread : "–");
      say(row.last, items(robot.outcome));
      say(row.best, items(robot.best));
      say(row.shares, this.#shares(state, robot));
    });
  }

  #shares(state, robot) {
    if (robot.row === null) return "nobody";
    if (!state.learner) return "–";
    const {shares_with: mates} = robot;
    if (state.learner.centralised) return "the swarm";
    return mates.length ? mates.join(", ") : "nobody";
  }

  #build(count) {
    this.body.replaceChildren();
    this.#rows = Array.from({length: count}, (_, number) => {
      const line = make("tr", this.body);
      const head = make("th", line, {scope: "row"});
      const button = make("button", head, {type: "button", className: "robot", textContent: String(number)});
      button.setAttribute("aria-label", `Choose robot ${number}`);
      button.addEventListener("click", () => this.choose(number));
      const fault = make("span", head, {className: "fault-words"});
      const cell = () => make("td", line);
      const figure = () => make("td", line, {className: "number"});
      return {line, button, fault, runs: cell(), expects: figure(), last: figure(), best: figure(), shares: cell()};
    });
  }
}

/** A row of buttons, one per robot, that open its menu; broken ones are marked. */
export class RobotButtons {
  #buttons = [];

  constructor(box, open) {
    this.box = box;
    this.open = open;
  }

  draw(team, selected, sign) {
    if (this.#buttons.length !== team.length) {
      this.box.replaceChildren();
      make("span", this.box, {textContent: "Robot"});
      this.#buttons = team.map((_, number) => {
        const button = make("button", this.box, {type: "button", className: "robot"});
        button.addEventListener("click", () => this.open(number, button));
        return button;
      });
    }
    team.forEach(({fault}, number) => {
      const button = this.#buttons[number];
      const {kind, mark} = sign(fault);
      say(button, mark ? `${number} ${mark}` : String(number));
      button.dataset.kind = kind;
      button.setAttribute("aria-label", `Break robot ${number}${fault === "none" ? "" : `, which has ${fault}`}`);
      button.setAttribute("aria-haspopup", "dialog");
      button.classList.toggle("selected", number === selected);
    });
  }
}

/** A button per food source: pressed means there. */
export class FoodButtons {
  #buttons = [];

  constructor(box, toggle) {
    this.box = box;
    this.toggle = toggle;
  }

  draw(food) {
    if (this.#buttons.length !== food.length) {
      this.box.replaceChildren();
      this.#buttons = food.map((_, number) => {
        const button = make("button", this.box, {type: "button", className: "food", textContent: String(number)});
        button.addEventListener("click", () => this.toggle(number));
        return button;
      });
    }
    food.forEach(({taken}, number) => {
      const button = this.#buttons[number];
      button.setAttribute("aria-pressed", String(!taken));
      button.setAttribute("aria-label", taken ? `Put food ${number} back` : `Take food ${number} away`);
    });
  }
}
