// The states of a table as they come from the server, at a pace that people can follow.

import { firstState, fullView, listen, request, withQuery } from "./api.js";

/** Milliseconds after a ply of a network, for boards where several follow each other before anybody has seen them. */
const PACE = { cards: 600, slots: 300 };
/** The same in games without people, on any board. */
const PACE_WITHOUT_PEOPLE = 450;
/** Plies that are shown one by one at most, when the server is ahead: with people, and without. */
const MOST_MISSED = 12;
const MOST_MISSED_WITHOUT_PEOPLE = 200;

const isAmongNetworks = ({ players }) => players.every(({ kind }) => kind === "engine");

/** Milliseconds for which a ply of a network is shown. */
function paceOfNetworks(state) {
  const pace = PACE[state.view.board.kind] ?? 0;
  return isAmongNetworks(state) ? Math.max(pace, PACE_WITHOUT_PEOPLE) : pace;
}

/** Milliseconds that the last ply of a state is looked at. */
function paceOf(state) {
  const { player } = state.history[state.plies - 1] ?? {};
  return state.players[player]?.kind === "engine" ? paceOfNetworks(state) : 0;
}

/** What was hidden may be known later. */
const isSamePly = (a, b) =>
  a.kind === b.kind && a.player === b.player && (a.hidden || b.hidden || (a.action === b.action && a.name === b.name));

/** The number of plies with which both states began. */
export function commonPlies(before, state) {
  const differs = before.history.findIndex((ply, at) => at >= state.plies || !isSamePly(ply, state.history[at]));
  return differs < 0 ? before.plies : differs;
}

/** The plies between two states after which people want to see the board. */
function missedPlies(last, state) {
  if (!last || paceOfNetworks(state) === 0 || state.plies <= last.plies + 1) return [];
  if (commonPlies(last, state) < last.plies) return [];
  const plies = [];
  for (let ply = last.plies + 1; ply < state.plies; ply++) {
    const { kind, player } = state.history[ply - 1];
    if (kind === "player" && state.players[player].kind === "engine") plies.push(ply);
  }
  return plies.slice(-(isAmongNetworks(state) ? MOST_MISSED_WITHOUT_PEOPLE : MOST_MISSED));
}

const withFullView = (state) => ({ ...state, view: fullView(state.view) });

export class TableFeed {
  /** `onState(state)` is called with every state, `onLost(bool)` when the connection breaks or is back, `onEnd(sentence)` at the end. */
  constructor({ id, seat, key, onState, onLost, onEnd }) {
    Object.assign(this, { id, seat, key, onState, onLost, onEnd });
    this.newest = null;
    this.timer = null;
    this.catchingUp = false;
    this.last = null;
    this.earlier = new Map();
    this.isOpen = true;
    this.listenWhileSeen();
    document.addEventListener("visibilitychange", (this.visibility = () => this.listenWhileSeen()));
    const first = firstState(id);
    // The screen that is being made takes states when it is complete.
    if (first) queueMicrotask(() => this.isOpen && this.offer(first));
  }

  /** The parameters that say who asks. */
  get viewer() {
    return { seat: this.seat, key: this.key };
  }

  path(rest = "", parameters = {}) {
    return withQuery(`/api/tables/${encodeURIComponent(this.id)}${rest}`, { ...this.viewer, ...parameters });
  }

  /** Listens in a page that is seen. A browser has six connections to a server, which the streams of hidden pages would use up. */
  listenWhileSeen() {
    this.stop?.();
    this.stop = null;
    if (document.hidden) return;
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
    this.isOpen = false;
    document.removeEventListener("visibilitychange", this.visibility);
    this.stop?.();
    this.stop = null;
    clearTimeout(this.timer);
    this.timer = null;
  }

  /**
   * Takes a state from the stream or from a reply; late and repeated ones are dropped. While a ply is being looked at, a state
   * without a new ply is shown at once: what can be chosen on the board stays what can be played.
   */
  offer(raw) {
    const state = withFullView(raw);
    const newest = this.newest ?? this.last;
    if (newest && state.version <= newest.version) return;
    const isWaiting = this.timer !== null;
    if (isWaiting && !this.newest && state.plies === this.last.plies) {
      this.display(state);
      return;
    }
    this.newest = state;
    if (!isWaiting && !this.catchingUp) this.next();
  }

  /** Shows the newest state, after the plies that lead to it where people would miss them. */
  async next() {
    this.timer = null;
    const state = this.newest;
    if (!state) return;
    const missed = missedPlies(this.last, state);
    if (missed.length > 0) {
      this.catchingUp = true;
      for (const ply of missed) await this.showEarlier(state, ply);
      this.catchingUp = false;
      if (!this.isOpen) return;
      if (this.newest !== state) {
        this.next();
        return;
      }
    }
    this.newest = null;
    this.display(state);
    const pace = paceOf(state);
    if (pace > 0) this.timer = setTimeout(() => this.next(), pace);
  }

  display(state) {
    if (this.last && commonPlies(this.last, state) < this.last.plies) this.earlier.clear();
    this.last = state;
    this.onState(state);
  }

  /** Shows a ply on the way to a state for as long as people need. */
  async showEarlier(state, ply) {
    const start = performance.now();
    let position;
    try {
      position = await request("GET", this.path("", { ply }));
    } catch {
      // The way is for the eye only; the state itself comes next.
      return;
    }
    if (!this.isOpen) return;
    const { turn, view } = withFullView(position);
    const shown = {
      ...state,
      turn,
      view,
      ply,
      plies: ply,
      history: state.history.slice(0, ply),
      returns: null,
      scores: null,
      thinking: null,
    };
    this.display(shown);
    const rest = paceOf(shown) - (performance.now() - start);
    if (rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
  }

  /** True if what is shown is what the server has. */
  get upToDate() {
    return !this.newest && !this.catchingUp;
  }

  /** The position after `ply` plies. */
  at(ply) {
    if (this.last && ply === this.last.plies) return Promise.resolve(this.last);
    // While the game goes on, earlier positions stay what they are; `next` forgets them when it does not.
    const known = this.earlier.get(ply);
    if (known) return known;
    const pending = request("GET", this.path("", { ply })).then(withFullView);
    this.earlier.set(ply, pending);
    pending.catch(() => this.earlier.delete(ply));
    return pending;
  }

  /** Asks for a change; the reply is the next state. */
  async change(rest, body = {}) {
    const state = await request("POST", `/api/tables/${encodeURIComponent(this.id)}${rest}`, {
      ...this.viewer,
      ...body,
    });
    this.offer(state);
    return state;
  }
}
