// What actions point at, and how an action is chosen by one or two targets of a board.
//
// A target has a key: p5 is place 5, v3 vertex 3, e0-1 an edge, c12 a card.

/** The paths of targets that choose an action; none if it is chosen by its name alone. */
export function pathsOf(spot) {
  if (spot === "button") return [];
  if ("place" in spot) return [[`p${spot.place}`]];
  if ("card" in spot) return [[`c${spot.card}`]];
  if ("move" in spot) return [[`p${spot.move[0]}`, `p${spot.move[1]}`]];
  const [a, b] = spot.edge;
  return [[`e${Math.min(a, b)}-${Math.max(a, b)}`], [`v${a}`, `v${b}`], [`v${b}`, `v${a}`]];
}

/** The target where an action comes to lie, or null. */
export function endOf(spot) {
  const path = pathsOf(spot)[0];
  return path ? path[path.length - 1] : null;
}

/** The choice of one of several legal actions, step by step. */
export class ActionChoice {
  constructor(actions = []) {
    this.paths = actions.flatMap((action) => pathsOf(action.spot).map((path) => ({ path, action })));
    this.first = null;
  }

  /** The targets that lead on from here. */
  targets() {
    const first = this.first;
    const open = first === null ? this.paths : this.paths.filter(({ path }) => path.length > 1 && path[0] === first);
    return new Set(open.map(({ path }) => path[first === null ? 0 : 1]));
  }

  /** Takes back the first step; false if there was none. */
  clear() {
    const had = this.first !== null;
    this.first = null;
    return had;
  }

  /**
   * Goes on with a target: the actions that it completes, several if it leaves a choice, none if it was a first step or leads
   * nowhere.
   */
  activate(key) {
    const first = this.first;
    if (first !== null) {
      this.first = null;
      const done = this.paths.filter(({ path }) => path.length > 1 && path[0] === first && path[1] === key);
      if (done.length > 0) return done.map(({ action }) => action);
      if (key === first) return [];
    }
    const open = this.paths.filter(({ path }) => path[0] === key);
    if (open.some(({ path }) => path.length === 1)) return open.map(({ action }) => action);
    if (open.length > 0) this.first = key;
    return [];
  }
}
