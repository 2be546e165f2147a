// The board of a view: draws it, and lets actions be chosen on it by mouse, touch and keyboard.

import { CardsSurface, TextSurface } from "./board_cards.js";
import { GraphSurface } from "./board_graph.js";
import { GridSurface } from "./board_grid.js";
import { SlotsSurface } from "./board_slots.js";
import { button, html, reducedMotion, svg } from "./dom.js";
import { drawHeat, drawLine } from "./overlay.js";
import { drawDie, pieceIcon } from "./pieces.js";
import { ActionChoice, endOf } from "./spots.js";

const SURFACES = {
  grid: GridSurface,
  slots: SlotsSurface,
  graph: GraphSurface,
  cards: CardsSurface,
  text: TextSurface,
};
/** A place that is drawn smaller than this many pixels is hard to hit with a finger: it is touched twice. */
const FINGER = 26;
const ANIMATION_MS = 180;

/** True if two lists of spots are equal. */
const sameSpots = (a, b) => JSON.stringify(a) === JSON.stringify(b);

export class Board {
  /** `onAction(action)` is called with a chosen legal action, `onHover(action or null)` with one that is pointed at. */
  constructor({ onAction, onHover = () => {} }) {
    this.onAction = onAction;
    this.onHover = onHover;
    this.chooser = html("div", { class: "chooser", role: "group", "aria-label": "Choose a move", hidden: true });
    this.dice = html("div", { class: "dice-row", role: "img", hidden: true });
    this.buttons = html("div", { class: "actions", role: "group", "aria-label": "Moves without a place on the board" });
    this.frame = html("div", { class: "board-frame" });
    this.root = html("div", { class: "board-area", tabindex: "-1" }, this.frame, this.dice, this.chooser, this.buttons);
    this.choice = new ActionChoice();
    this.view = null;
    this.key = null;
    this.cursor = null;
    this.playable = false;
    this.marks = [];
    this.line = null;
    // A click leaves the focus where it is, so that the arrow keys go on stepping through the game.
    this.frame.addEventListener("mousedown", (event) => event.preventDefault());
    this.frame.addEventListener("click", (event) => this.clicked(event));
    this.frame.addEventListener("pointerdown", (event) => this.pressed(event));
    this.frame.addEventListener("pointerover", (event) => this.hovered(event));
    this.frame.addEventListener("pointerleave", () => this.hovered(null));
    this.root.addEventListener("keydown", (event) => this.typed(event));
  }

  /** Draws a view. `options`: `playable`, `flipped`, `seat`, `playerName(player)`, `animate`, `label`. */
  update(view, options) {
    const surfaceType = SURFACES[view.board.kind];
    const key = view.board.kind + surfaceType.key(view, options);
    const hadFocus = this.root.contains(document.activeElement);
    const before = this.view;
    if (key !== this.key) {
      this.key = key;
      this.surface = new surfaceType(view, options);
      this.frame.replaceChildren(this.surface.root);
      this.frame.dataset.kind = view.board.kind;
      this.surface.root.setAttribute("role", "group");
      this.cursor = null;
    }
    this.surface.root.setAttribute("aria-label", options.label ?? "Board");
    const isNew = !before || !sameSpots(before.actions, view.actions) || !sameSpots(before.last, view.last);
    if (isNew || this.playable !== options.playable) {
      this.choice = new ActionChoice(options.playable ? view.actions : []);
      this.closeChooser();
      this.confirmed = null;
    }
    this.view = view;
    this.playable = options.playable;
    this.surface.draw(view, options);
    if (options.animate && before && !sameSpots(before.last, view.last)) this.animate(view);
    this.drawDice();
    this.drawButtons();
    this.mark();
    this.drawOverlay();
    if (hadFocus) this.keepFocus();
  }

  /** Shows what an analysis says: `[{action, spot, weight, text, name}]`. */
  setHeat(marks) {
    this.marks = marks;
    this.drawOverlay();
  }

  /** Shows an expected line, `[spot]`; null for none. */
  setLine(spots) {
    this.line = spots;
    this.drawOverlay();
  }

  drawOverlay() {
    if (!this.surface) return;
    drawHeat(this.surface, this.line ? [] : this.marks);
    if (this.line) drawLine(this.surface, this.line);
    const byAction = new Map(this.marks.map((mark) => [String(mark.action), mark]));
    for (const element of this.buttons.children) {
      const mark = byAction.get(element.dataset.action);
      if (mark?.text) element.dataset.badge = mark.text;
      else delete element.dataset.badge;
    }
  }

  /** Moves the piece of the last move from where it came. */
  animate(view) {
    const spot = view.last[view.last.length - 1];
    if (!spot || reducedMotion()) return;
    const end = endOf(spot);
    const piece = end && this.surface.pieceAt(end);
    if (!piece) return;
    const timing = { duration: ANIMATION_MS, easing: "ease-out" };
    if ("move" in spot) {
      const [from, to] = spot.move.map((place) => this.surface.centre(`p${place}`));
      const scale = this.surface.pieceScale ?? 1;
      const way = `translate(${(from[0] - to[0]) / scale}px, ${(from[1] - to[1]) / scale}px)`;
      piece.animate([{ transform: way }, { transform: "translate(0, 0)" }], timing);
    } else if (view.board.style === "drop") {
      const height = this.surface.centre(end)[1] + 60;
      const frames = [{ transform: `translate(0, ${-height}px)` }, { transform: "translate(0, 0)" }];
      piece.animate(frames, { duration: ANIMATION_MS + height * 0.25, easing: "cubic-bezier(0.5, 0, 0.9, 0.6)" });
    } else if ("place" in spot) {
      piece.animate(
        [
          { transform: "scale(0.6)", opacity: 0.3 },
          { transform: "scale(1)", opacity: 1 },
        ],
        timing,
      );
    }
  }

  /** Dice beside a board that has no place for them. */
  drawDice() {
    const { dice, board } = this.view;
    this.dice.hidden = dice.length === 0 || board.kind === "slots";
    if (this.dice.hidden) return;
    this.dice.setAttribute("aria-label", `dice ${dice.join(", ")}`);
    this.dice.replaceChildren(...dice.map((face) => svg("svg", { viewBox: "-50 -50 100 100" }, drawDie(face))));
  }

  /** Buttons of the actions that point at nothing on the board. */
  drawButtons() {
    const actions = this.playable ? this.view.actions.filter(({ spot }) => endOf(spot) === null) : [];
    const same = actions.map(({ action, name }) => `${action}/${name}`).join();
    if (same === this.shownButtons) return;
    this.shownButtons = same;
    const make = (action) =>
      button(action.name, () => this.play(action), {
        class: "action",
        "data-action": String(action.action),
        onpointerenter: () => this.onHover(action),
        onpointerleave: () => this.onHover(null),
      });
    this.buttons.replaceChildren(...actions.map(make));
  }

  /** The classes and accessible names of all targets. */
  mark() {
    const open = this.choice.targets();
    const first = this.choice.first;
    this.root.classList.toggle("choosing", first !== null);
    this.root.classList.toggle("playable", this.playable);
    if (this.cursor && !this.surface.targets.has(this.cursor)) this.cursor = null;
    const entry = this.cursor ?? this.firstTarget(open);
    for (const { key, element, pointerOnly } of this.surface.targets.values()) {
      const isOpen = open.has(key);
      const aimed = isOpen || (this.playable && open.has(this.surface.resolve(key, open)));
      element.classList.toggle("open", isOpen);
      element.classList.toggle("aimed", aimed);
      element.classList.toggle("selected", key === first || key === this.confirmed);
      element.classList.toggle("occupied", isOpen && first !== null && this.surface.pieceAt(key) !== null);
      if (pointerOnly) continue;
      const content = this.surface.contentOf(key, this.view);
      const state = key === first ? ", chosen" : isOpen ? (first === null ? "" : ", possible") : "";
      element.setAttribute("role", "button");
      element.setAttribute("aria-label", [this.surface.nameOf(key), content].filter(Boolean).join(", ") + state);
      element.setAttribute("aria-disabled", String(!aimed && key !== first));
      element.setAttribute("tabindex", key === entry ? "0" : "-1");
    }
  }

  firstTarget(open) {
    for (const { key, pointerOnly } of this.surface.targets.values()) if (open.has(key) && !pointerOnly) return key;
    for (const { key, pointerOnly } of this.surface.targets.values()) if (!pointerOnly) return key;
    return null;
  }

  /** After a change: keyboard users stay where they can go on. */
  keepFocus() {
    const active = document.activeElement;
    const onTarget = active?.dataset?.key && this.surface.targets.has(active.dataset.key);
    const inButtons = this.buttons.contains(active);
    if (!this.playable) {
      if (!onTarget) this.root.focus({ preventScroll: true });
      return;
    }
    const open = this.choice.targets();
    if (open.size === 0 && !inButtons) this.buttons.firstElementChild?.focus({ preventScroll: true });
    else if (!inButtons && (!onTarget || !this.surface.targets.get(active.dataset.key).element.isConnected)) {
      this.focusTarget(this.firstTarget(open));
    }
  }

  focusTarget(key) {
    if (!key) return;
    this.cursor = key;
    this.mark();
    this.surface.targets.get(key).element.focus({ preventScroll: true });
  }

  keyOf(event) {
    return event?.target?.closest?.("[data-key]")?.dataset.key ?? null;
  }

  clicked(event) {
    if (this.dragged) {
      this.dragged = false;
      return;
    }
    const key = this.keyOf(event);
    if (key === null || !this.playable) {
      this.cancel();
      return;
    }
    const isTouch = event.pointerType === "touch";
    if (isTouch && this.needsConfirmation(key)) return;
    this.cursor = this.surface.targets.get(key)?.pointerOnly ? this.cursor : key;
    this.activate(key);
  }

  /** True at the first touch of a small place, which only marks it. */
  needsConfirmation(key) {
    const open = this.choice.targets();
    const meant = this.surface.resolve(key, open);
    const isPlace = key[0] === "p" && this.choice.first === null && open.has(meant);
    if (!isPlace || this.confirmed === meant) return false;
    const box = this.surface.targets.get(key).element.getBoundingClientRect();
    if (Math.min(box.width, box.height) >= FINGER) return false;
    this.confirmed = meant;
    this.mark();
    return true;
  }

  activate(key) {
    const open = this.choice.targets();
    const actions = this.choice.activate(this.surface.resolve(key, open));
    this.confirmed = null;
    this.closeChooser();
    if (actions.length === 1) this.play(actions[0]);
    else if (actions.length > 1) this.openChooser(actions);
    this.mark();
  }

  play(action) {
    this.choice.clear();
    this.closeChooser();
    this.onHover(null);
    this.mark();
    this.onAction(action);
  }

  /** Offers several actions that point at one spot: promotions of a pawn. */
  openChooser(actions) {
    const { pieces = [] } = this.view.board;
    const names = actions.map(({ name }) => name);
    let common = 0;
    while (names.every((name) => name.length > common + 1 && name[common] === names[0][common])) common++;
    const pieceOf = (name) => {
      const rest = name.slice(common).toLowerCase();
      const mine = pieces.filter((piece) => piece.mark.toLowerCase() === rest);
      return mine.find(({ owner }) => owner === this.mover) ?? mine[0];
    };
    // Games list the strongest piece last, and it is the one that is mostly wanted.
    const inOrder = actions.every(({ name }) => pieceOf(name)) ? [...actions].reverse() : actions;
    const choices = inOrder.map((action) => {
      const piece = pieceOf(action.name);
      const choice = button("", () => this.play(action), {
        class: "choice",
        "aria-label": piece?.name ?? action.name,
        title: action.name,
      });
      choice.append(piece ? pieceIcon(piece, this.view.colours) : action.name);
      return choice;
    });
    this.chooser.replaceChildren(
      ...choices,
      button("Cancel", () => this.cancel(), { class: "choice quiet" }),
    );
    this.chooser.hidden = false;
    choices[0].focus({ preventScroll: true });
  }

  closeChooser() {
    if (this.chooser.hidden) return;
    const hadFocus = this.chooser.contains(document.activeElement);
    this.chooser.hidden = true;
    if (hadFocus) this.focusTarget(this.cursor ?? this.firstTarget(this.choice.targets()));
  }

  /** Takes back a first step or an open choice; false if there was none. */
  cancel() {
    const had = this.choice.clear() || !this.chooser.hidden || this.confirmed;
    this.confirmed = null;
    this.closeChooser();
    if (this.surface) this.mark();
    return Boolean(had);
  }

  hovered(event) {
    const key = this.keyOf(event);
    const open = this.choice.targets();
    const meant = key && this.playable ? this.surface.resolve(key, open) : null;
    const aim = meant && open.has(meant) ? meant : null;
    if (aim === this.aim) return;
    for (const old of this.frame.querySelectorAll(".aim")) old.classList.remove("aim");
    this.aim = aim;
    if (aim) this.surface.targets.get(aim).element.classList.add("aim");
    const [action] = aim ? this.choice.paths.filter(({ path }) => path.length === 1 && path[0] === aim) : [];
    this.onHover(action?.action ?? null);
  }

  /** Begins to drag a piece that can move. */
  pressed(event) {
    const key = this.keyOf(event);
    const piece = key && this.surface.pieceAt(key);
    const starts = this.playable && this.choice.paths.some(({ path }) => path.length > 1 && path[0] === key);
    if (event.button !== 0 || !piece || !starts || !this.surface.root.getScreenCTM) return;
    const begin = { x: event.clientX, y: event.clientY };
    const scale = this.surface.root.getScreenCTM().a * (this.surface.pieceScale ?? 1);
    let moving = false;
    const move = (next) => {
      const [dx, dy] = [next.clientX - begin.x, next.clientY - begin.y];
      if (!moving && Math.hypot(dx, dy) < 6) return;
      if (!moving) {
        moving = true;
        this.choice.clear();
        this.choice.activate(key);
        this.mark();
        piece.classList.add("dragged");
      }
      piece.setAttribute("transform", `translate(${dx / scale} ${dy / scale})`);
    };
    const end = (next) => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
      removeEventListener("pointercancel", end);
      piece.removeAttribute("transform");
      piece.classList.remove("dragged");
      if (!moving) return;
      // The click that follows belongs to the drag.
      this.dragged = true;
      setTimeout(() => (this.dragged = false), 0);
      const under = document.elementFromPoint(next.clientX, next.clientY)?.closest?.("[data-key]")?.dataset.key;
      if (next.type === "pointerup" && under && under !== key && this.choice.targets().has(under)) this.activate(under);
      else this.cancel();
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
    addEventListener("pointercancel", end);
  }

  typed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && this.cancel()) {
      event.stopPropagation();
      event.preventDefault();
      return;
    }
    const key = this.keyOf(event);
    if (key === null) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (this.playable) this.activate(key);
      return;
    }
    const next = this.neighbour(key, event.key);
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.focusTarget(next);
  }

  /** The target that a key leads to: legal ones, or all if there is nothing to choose. Undefined for keys that do not move. */
  neighbour(key, name) {
    const open = this.choice.targets();
    const all = [...this.surface.targets.values()].filter((target) => !target.pointerOnly);
    const legal = all.filter((target) => open.has(target.key));
    const targets = legal.length > 0 ? legal : all;
    const index = targets.findIndex((target) => target.key === key);
    const turn = (step) => targets[(index + step + targets.length) % targets.length].key;
    if (name === "Home") return targets[0].key;
    if (name === "End") return targets[targets.length - 1].key;
    if (name === "PageDown") return index < 0 ? targets[0].key : turn(1);
    if (name === "PageUp") return index < 0 ? targets[targets.length - 1].key : turn(-1);
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (!(name in ways)) return undefined;
    const [wx, wy] = ways[name];
    const middle = ({ element }) => {
      const box = element.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2];
    };
    const [x, y] = middle(this.surface.targets.get(key));
    let best = key;
    let least = Infinity;
    for (const target of targets) {
      const [tx, ty] = middle(target);
      const along = (tx - x) * wx + (ty - y) * wy;
      const across = Math.abs((tx - x) * wy) + Math.abs((ty - y) * wx);
      const distance = along + 2.5 * across;
      if (along > 1 && distance < least) [best, least] = [target.key, distance];
    }
    return best;
  }
}
