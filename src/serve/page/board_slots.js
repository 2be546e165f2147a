// Boards with slots that hold stacks: points of backgammon in two rows, with bars and trays.

import { svg } from "./dom.js";
import { drawDie, drawPiece } from "./pieces.js";

const WIDTH = 100;
const SIDE_WIDTH = 96;
/** Pieces of a stack before they overlap. */
const FLAT = 5;
const STEP = 92;
/** The height of a row. */
const HEIGHT = FLAT * STEP + 20;
/** The free strip between the rows, where dice lie. */
const MIDDLE = 120;
const TOTAL = 2 * HEIGHT + MIDDLE;
const MARGIN = 56;

export class SlotsSurface {
  constructor(view, { flipped }) {
    this.flipped = flipped;
    this.board = view.board;
    this.radius = 46;
    // Its labels are read on a board that is twice as wide as others.
    this.arrowLabel = 36;
    this.slots = this.board.rows.flat();
    this.columns = Math.max(...this.board.rows.map((row) => row.length));
    this.targets = new Map();
    this.layers = {};
    for (const name of ["ground", "mark", "piece", "dice", "over", "heat", "hit"]) {
      this.layers[name] = svg("g", { class: `layer-${name}` });
    }
    this.lefts = this.leftEdges();
    const width = this.lefts[this.columns];
    this.root = svg("svg", { class: "board slots", viewBox: `-16 ${-MARGIN} ${width + 32} ${TOTAL + 2 * MARGIN}` });
    this.root.append(...Object.values(this.layers));
    this.layers.ground.append(
      svg("rect", { class: "table-edge", x: -16, y: -MARGIN, width: width + 32, height: TOTAL + 2 * MARGIN, rx: 14 }),
    );
    this.slots.forEach((slot, place) => this.addSlot(slot, place));
  }

  static key(view, { flipped }) {
    return JSON.stringify([view.board.rows.map((row) => row.map(({ role, label }) => [role, label])), flipped]);
  }

  /** The left edge of every column as it is seen; both rows have the same widths. */
  leftEdges() {
    const roles = this.board.rows[0].map(({ role }) => role);
    if (this.flipped) roles.reverse();
    let x = 0;
    const lefts = roles.map((role) => {
      const left = x;
      x += role === "point" ? WIDTH : SIDE_WIDTH;
      return left;
    });
    return [...lefts, x];
  }

  /** The column and the row, 0 above, where a slot is seen. */
  seat(place) {
    const length = this.board.rows[0].length;
    const [row, column] = place < length ? [0, place] : [1, place - length];
    return this.flipped ? [this.columns - 1 - column, 1 - row] : [column, row];
  }

  box(place) {
    const [column, row] = this.seat(place);
    const y = row === 0 ? 0 : HEIGHT + MIDDLE;
    return { row, x: this.lefts[column], y, width: this.lefts[column + 1] - this.lefts[column], height: HEIGHT };
  }

  addSlot(slot, place) {
    const { row, x, y, width, height } = this.box(place);
    const [column] = this.seat(place);
    const { ground, hit } = this.layers;
    const middle = row === 0 ? height + MIDDLE / 2 : y - MIDDLE / 2;
    const base = row === 0 ? 0 : middle;
    ground.append(svg("rect", { class: `slot-${slot.role}`, x, y: base, width, height: height + MIDDLE / 2 }));
    if (slot.role === "point") {
      const tip = row === 0 ? height - 30 : y + 30;
      const foot = row === 0 ? 0 : TOTAL;
      const shade = (column + row) % 2 === 0 ? "point-a" : "point-b";
      ground.append(
        svg("polygon", { class: shade, points: `${x + 4},${foot} ${x + width - 4},${foot} ${x + width / 2},${tip}` }),
      );
    }
    const labelY = row === 0 ? -MARGIN / 2 : TOTAL + MARGIN / 2;
    ground.append(svg("text", { class: "label", x: x + width / 2, y: labelY, dy: "0.36em" }, slot.label));
    const key = `p${place}`;
    const element = svg("rect", { class: "target", "data-key": key, x: x + 1, y, width: width - 2, height, rx: 8 });
    hit.append(element);
    this.targets.set(key, { key, element });
  }

  /** The middle of the `index`th piece of a slot that holds `count`. */
  pieceCentre(place, index, count) {
    const { row, x, y, width, height } = this.box(place);
    const step = count > FLAT ? (STEP * (FLAT - 1)) / (count - 1) : STEP;
    const away = 50 + index * step;
    return [x + width / 2, row === 0 ? y + away : y + height - away];
  }

  /** The middle of a slot's outermost piece. */
  centre(key) {
    const place = Number(key.slice(1));
    const count = this.slots[place]?.count ?? 0;
    return this.pieceCentre(place, Math.max(0, count - 1), Math.max(1, count));
  }

  nameOf(key) {
    const { label, role, piece } = this.slots[Number(key.slice(1))];
    if (role === "point") return `point ${label}`;
    const owner = this.board.pieces[piece]?.name;
    return owner ? `${label} of ${owner}` : label;
  }

  contentOf(key) {
    const { count, piece } = this.slots[Number(key.slice(1))];
    return count === 0 ? "empty" : `${count} ${this.board.pieces[piece]?.name ?? "pieces"}`;
  }

  resolve(key) {
    return key;
  }

  draw(view) {
    this.board = view.board;
    this.slots = this.board.rows.flat();
    const { piece, over, mark } = this.layers;
    piece.replaceChildren();
    over.replaceChildren();
    mark.replaceChildren();
    this.slots.forEach((slot, place) => this.drawStack(slot, place, view));
    this.drawDice(view.dice);
    for (const spot of view.last) {
      if (!("move" in Object(spot))) continue;
      const [from, to] = spot.move;
      const [cx, cy] = this.centre(`p${to}`);
      over.append(svg("circle", { class: "last-ring", cx, cy, r: 15 }));
      const { row, x, y, width, height } = this.box(from);
      mark.append(
        svg("rect", {
          class: "last-slot",
          x: x + 30,
          y: row === 0 ? 0 : y + height - 8,
          width: width - 60,
          height: 8,
          rx: 4,
        }),
      );
    }
  }

  drawStack(slot, place, view) {
    const kind = this.board.pieces[slot.piece];
    for (let index = 0; index < slot.count && kind; index++) {
      const [x, y] = this.pieceCentre(place, index, slot.count);
      const element = svg("g", {
        class: "stacked",
        "data-place": place,
        transform: `translate(${x} ${y}) scale(1.02)`,
      });
      element.append(drawPiece(kind, view.colours));
      this.layers.piece.append(element);
    }
    if (slot.count > FLAT && kind) {
      const [x, y] = this.pieceCentre(place, slot.count - 1, slot.count);
      const colour = view.colours[kind.owner] ?? "none";
      this.layers.piece.append(
        svg("text", { class: `stack-count on-${colour}`, x, y, dy: "0.36em" }, String(slot.count)),
      );
    }
  }

  drawDice(dice) {
    this.layers.dice.replaceChildren();
    const middle = (this.lefts[0] + this.lefts[Math.floor(this.columns / 2)]) / 2;
    const right = (this.lefts[Math.floor(this.columns / 2)] + this.lefts[this.columns]) / 2;
    const x = this.columns > 6 ? right : middle;
    dice.forEach((face, index) => {
      const die = drawDie(face);
      const dx = (index - (dice.length - 1) / 2) * 104;
      die.setAttribute("transform", `translate(${x + dx} ${TOTAL / 2})`);
      this.layers.dice.append(die);
    });
  }

  /** The outermost piece of a slot. */
  pieceAt(key) {
    const stacked = this.layers.piece.querySelectorAll(`.stacked[data-place="${key.slice(1)}"]`);
    return stacked[stacked.length - 1]?.firstElementChild ?? null;
  }
}
