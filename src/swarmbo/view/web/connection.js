/** The WebSocket to this page's own swarm. */
export class Connection {
  #socket = null;

  /** `hear(message)` is called with what the server says, `lose(words)` when it has gone. */
  constructor(hear, lose) {
    this.hear = hear;
    this.lose = lose;
    this.open();
  }

  open() {
    const socket = (this.#socket = new WebSocket(`ws://${location.host}/swarm`));
    socket.addEventListener("message", (event) => this.hear(JSON.parse(event.data)));
    socket.addEventListener("close", (event) => {
      if (socket === this.#socket) this.lose(event.reason);
    });
  }

  send(type, fields = {}) {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify({type, ...fields}));
  }
}
