// The states of a table as they come from the server, at a pace that people can follow.

import { fullView, listen, request, withQuery } from "./api.js";

/** Milliseconds after a ply of a network, for boards where several follow each other before anybody has seen them. */
const PACE = { cards: 600, slots: 300 };
/** States that may wait before the oldest are left out. */
const MOST_WAITING = 16;

const withFullView = (state) => ({ ...state, view: fullView(state.view) });

export class TableFeed {
  /** `onState(state)` is called with every state, `onLost(bool)` when the connection breaks or is back, `onEnd(sentence)` at the end. */
  constructor({ id, seat, key, onState, onLost, onEnd }) {
    Object.assign(this, { id, seat, key, onState, onLost, onEnd });
    this.waiting = [];
    this.timer = null;
    this.last = null;
    this.earlier = new Map();
    this.open();
  }

  /** The parameters that say who asks. */
  get viewer() {
    return { seat: this.seat, key: this.key };
  }

  path(rest = "", parameters = {}) {
    return withQuery(`/api/tables/${encodeURIComponent(this.id)}${rest}`, { ...this.viewer, ...parameters });
  }

  open() {
    this.close();
    const handlers = {
      state: (state) => this.offer(state),
      closed: ({ reason }) => {
        this.close();
        this.onEnd(reason);
      },
    };
    this.stop = listen(this.path("/events"), handlers, {
      lost: this.onLost,
      refused: () => this.refused(),
    });
  }

  /** The stream says nothing about why it was refused; a plain request does. */
  async refused() {
    this.close();
    try {
      this.offer(await request("GET", this.path()));
      this.onEnd("The server has ended the connection; reload the page to go on.");
    } catch (error) {
      this.onEnd(error.message);
    }
  }

  close() {
    this.stop?.();
    this.stop = null;
    clearTimeout(this.timer);
    this.timer = null;
  }

  /** Takes a state from the stream or from a reply; late ones are dropped. */
  offer(raw) {
    const state = withFullView(raw);
    const newest = this.waiting[this.waiting.length - 1] ?? this.last;
    if (newest && state.version < newest.version) return;
    if (this.waiting.length > 0 && newest.plies === state.plies) this.waiting.pop();
    this.waiting.push(state);
    if (this.waiting.length > MOST_WAITING) this.waiting.splice(0, this.waiting.length - 1);
    if (this.timer === null) this.next();
  }

  next() {
    this.timer = null;
    const state = this.waiting.shift();
    if (!state) return;
    const before = this.last;
    this.last = state;
    const goesOn = before && state.plies > before.plies;
    if (!goesOn) this.earlier.clear();
    this.onState(state);
    const { player } = state.history[state.plies - 1] ?? {};
    const pace = state.players[player]?.kind === "engine" ? (PACE[state.view.board.kind] ?? 0) : 0;
    if (pace > 0 && goesOn) this.timer = setTimeout(() => this.next(), pace);
    else if (this.waiting.length > 0) this.next();
  }

  /** True if what is shown is what the server has. */
  get upToDate() {
    return this.waiting.length === 0;
  }

  /** The position after `ply` plies. */
  at(ply) {
    if (this.last && ply === this.last.plies) return Promise.resolve(this.last);
    // While the game goes on, earlier positions stay what they are; `next` forgets them when it does not.
    const known = this.earlier.get(ply);
    if (known) return known;
    const asked = request("GET", this.path("", { ply })).then(withFullView);
    this.earlier.set(ply, asked);
    asked.catch(() => this.earlier.delete(ply));
    return asked;
  }

  /** Asks for a change; the reply is the next state. */
  async change(rest, body = {}) {
    const state = await request("POST", `/api/tables/${encodeURIComponent(this.id)}${rest}`, { ...this.viewer, ...body });
    this.offer(state);
    return state;
  }
}
