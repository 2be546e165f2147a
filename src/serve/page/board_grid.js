// Boards of squares, points where lines cross, columns to drop into, and hexagons.

import { svg } from "./dom.js";
import { drawPiece } from "./pieces.js";

/** The side of a square. */
const CELL = 100;
/** The width of a row or column between cells: a border, walls, lines. */
const GAP = 26;
const HEX_RADIUS = 56;
const HEX_WIDTH = HEX_RADIUS * Math.sqrt(3);

const sizeOf = (grid) => [Math.ceil(grid.cells.length / Math.max(1, grid.columns.length)), grid.columns.length];

/** The edges of columns or rows as they are seen. Those without a label lie between cells. */
function edgesOf(labels, count, flipped) {
  const widths = Array.from({ length: count }, (_, index) => (labels[index] === "" ? GAP : CELL));
  if (flipped) widths.reverse();
  const edges = [0];
  for (const width of widths) edges.push(edges[edges.length - 1] + width);
  return edges;
}

/** Where the dots of a board of lines are: the known ones of Go, and those of Gomoku's 15x15. */
function starPoints(rows, columns) {
  if (rows !== columns || rows < 7 || rows % 2 === 0) return [];
  const near = rows < 13 ? 2 : 3;
  const middle = (rows - 1) / 2;
  const lines = rows >= 17 ? [near, middle, rows - 1 - near] : [near, rows - 1 - near];
  const points = lines.flatMap((row) => lines.map((column) => [row, column]));
  return rows >= 17 ? points : [...points, [middle, middle]];
}

export class GridSurface {
  constructor(view, { flipped }) {
    const grid = view.board;
    this.grid = grid;
    [this.rows, this.columns] = sizeOf(grid);
    this.hexagonal = grid.style === "hexagons";
    // A board into which pieces drop has one way up.
    this.flipped = flipped && grid.style !== "drop";
    this.xs = edgesOf(grid.columns, this.columns, this.flipped);
    this.ys = edgesOf(grid.rows, this.rows, this.flipped);
    [this.width, this.height] = [this.xs[this.columns], this.ys[this.rows]];
    // A cell covers this radius.
    this.radius = this.hexagonal ? HEX_WIDTH / 2 : CELL / 2;
    this.pieceScale =
      { checkered: 0.96, lines: 1.06, hexagons: 0.8, drop: 0.92, squares: 0.86 }[grid.style] * (this.radius / 50);
    // Labels are as large on boards of many cells as on those of few.
    this.labelSize = 26 * Math.max(0.5, Math.min(1.8, Math.max(this.width, this.height) / CELL / 9));
    this.targets = new Map();
    this.pieces = new Map();
    this.layers = {};
    for (const name of ["ground", "mark", "piece", "heat", "hit"]) {
      this.layers[name] = svg("g", { class: `layer-${name}` });
    }
    this.root = svg("svg", {
      class: `board grid ${grid.style}${this.isFelt(view) ? " felt" : ""}`,
      viewBox: this.viewBox(),
    });
    this.root.append(...Object.values(this.layers));
    this.drawGround(view);
    for (let place = 0; place < grid.cells.length; place++) this.addTarget(place);
  }

  /** Boards with the same key have the same ground and targets. */
  static key(view, { flipped }) {
    const { style, columns, rows, borders, cells } = view.board;
    return JSON.stringify([style, columns, rows, borders ? [borders, view.colours] : null, cells.length, flipped]);
  }

  /** Black and white discs on squares lie on green cloth, as in Othello. */
  isFelt(view) {
    const { style, pieces } = view.board;
    const isDisc = ({ shape, owner }) => shape === "disc" && ["black", "white"].includes(view.colours[owner]);
    return style === "squares" && pieces.length > 0 && pieces.every(isDisc);
  }

  viewBox() {
    if (this.hexagonal) {
      const width = HEX_WIDTH * (this.columns + (this.rows - 1) / 2);
      const height = HEX_RADIUS * (1.5 * (this.rows - 1) + 2);
      return `-62 -62 ${width + 124} ${height + 124}`;
    }
    const { width, height } = this;
    const edge = this.labelSize * 1.7;
    const margins = {
      checkered: [0, 0, 0, 0],
      drop: [20, 20, 20, edge + 24],
      squares: [edge, edge, 4, 4],
      lines: [edge, edge, 6, 6],
    };
    const [left, top, right, bottom] = margins[this.grid.style];
    return `${-left} ${-top} ${width + left + right} ${height + top + bottom}`;
  }

  rowAndColumn(place) {
    const [row, column] = [Math.floor(place / this.columns), place % this.columns];
    return this.flipped ? [this.rows - 1 - row, this.columns - 1 - column] : [row, column];
  }

  centreAt(row, column) {
    if (!this.hexagonal) {
      const middle = (edges, index) => (edges[index] + edges[index + 1]) / 2;
      return [middle(this.xs, column), middle(this.ys, row)];
    }
    return [HEX_WIDTH * (column + 0.5 + row / 2), HEX_RADIUS * (1 + 1.5 * row)];
  }

  /** The middle of a target. */
  centre(key) {
    return this.centreAt(...this.rowAndColumn(Number(key.slice(1))));
  }

  cellShape(row, column, attributes) {
    if (!this.hexagonal) {
      const [x, y] = [this.xs[column], this.ys[row]];
      const [width, height] = [this.xs[column + 1] - x, this.ys[row + 1] - y];
      return svg("rect", { x, y, width, height, ...attributes });
    }
    return svg("polygon", { points: this.corners(row, column).join(" "), ...attributes });
  }

  /** True for a border, a wall or a line between cells. */
  isBetween(place) {
    const { columns, rows } = this.grid;
    return columns[place % this.columns] === "" || rows[Math.floor(place / this.columns)] === "";
  }

  /** The corners of a hexagon from the top, clockwise. */
  corners(row, column) {
    const [x, y] = this.centreAt(row, column);
    const [half, r] = [HEX_WIDTH / 2, HEX_RADIUS];
    return [
      [0, -r],
      [half, -r / 2],
      [half, r / 2],
      [0, r],
      [-half, r / 2],
      [-half, -r / 2],
    ].map(([dx, dy]) => `${(x + dx).toFixed(1)},${(y + dy).toFixed(1)}`);
  }

  drawGround(view) {
    const { style } = this.grid;
    const { ground } = this.layers;
    if (style === "lines") this.drawLines(ground);
    else if (style === "drop") this.drawRack(ground);
    else {
      for (let row = 0; row < this.rows; row++) {
        for (let column = 0; column < this.columns; column++) {
          const shade = (row + column) % 2 === 1 ? "dark" : "light";
          const isBetween = Math.min(this.xs[column + 1] - this.xs[column], this.ys[row + 1] - this.ys[row]) === GAP;
          ground.append(this.cellShape(row, column, { class: `cell ${isBetween ? "between" : shade}` }));
        }
      }
    }
    if (this.hexagonal && this.grid.borders) this.drawBorders(ground, view.colours);
    this.drawLabels(ground);
  }

  drawLines(ground) {
    const [right, bottom] = [this.columns * CELL, this.rows * CELL];
    const edge = this.labelSize * 1.7;
    const lines = [];
    for (let column = 0; column < this.columns; column++) lines.push(`M${(column + 0.5) * CELL} 50V${bottom - 50}`);
    for (let row = 0; row < this.rows; row++) lines.push(`M50 ${(row + 0.5) * CELL}H${right - 50}`);
    ground.append(
      svg("rect", { class: "wood", x: -edge, y: -edge, width: right + edge + 6, height: bottom + edge + 6, rx: 14 }),
      svg("path", { class: "board-lines", d: lines.join("") }),
      ...starPoints(this.rows, this.columns).map(([row, column]) => {
        const [cx, cy] = this.centreAt(row, column);
        return svg("circle", { class: "star", cx, cy, r: 11 });
      }),
    );
  }

  /** A rack with holes: the holes are drawn over pieces, so that they fall behind it. */
  drawRack(ground) {
    const [width, height] = [this.columns * CELL, this.rows * CELL];
    ground.append(svg("rect", { class: "rack-back", width, height }));
    let front = `M-14 -14H${width + 14}V${height + 14}H-14Z`;
    for (let place = 0; place < this.grid.cells.length; place++) {
      const [x, y] = this.centre(`p${place}`);
      front += `M${x - 42} ${y}a42 42 0 1 0 84 0a42 42 0 1 0 -84 0Z`;
    }
    this.layers.piece.after(svg("path", { class: "rack", "fill-rule": "evenodd", d: front }));
  }

  /** The borders in the colours of the players whose aim they are: top, right, bottom, left. */
  drawBorders(ground, colours) {
    const sides = { top: [], right: [], bottom: [], left: [] };
    const [last, end] = [this.rows - 1, this.columns - 1];
    for (let column = 0; column <= end; column++) {
      const above = this.corners(0, column);
      const below = this.corners(last, end - column);
      sides.top.push(above[5], above[0], ...(column === end ? [above[1]] : []));
      sides.bottom.push(below[2], below[3], ...(column === end ? [below[4]] : []));
    }
    for (let row = 0; row <= last; row++) {
      const right = this.corners(row, end);
      const left = this.corners(last - row, 0);
      sides.right.push(right[1], right[2], ...(row === last ? [right[3]] : []));
      sides.left.push(left[4], left[5], ...(row === last ? [left[0]] : []));
    }
    // A board turned by half has the bottom's border at the top.
    const order = this.flipped ? [2, 3, 0, 1] : [0, 1, 2, 3];
    Object.values(sides).forEach((points, index) => {
      const owner = this.grid.borders[order[index]];
      ground.append(svg("polyline", { class: `border colour-${colours[owner] ?? "none"}`, points: points.join(" ") }));
    });
  }

  drawLabels(ground) {
    const { style, columns, rows } = this.grid;
    const size = style === "checkered" ? 21 : this.labelSize;
    const put = (text, x, y, name = "") => {
      if (text === "") return;
      const label = svg("text", { class: `label ${name}`, x, y, dy: "0.36em" }, text);
      label.style.fontSize = `${size}px`;
      ground.append(label);
    };
    const shown = (labels) => (this.flipped ? [...labels].reverse() : labels);
    shown(columns).forEach((text, column) => {
      const [x, y] = this.centreAt(style === "checkered" || style === "drop" ? this.rows - 1 : 0, column);
      if (style === "checkered") put(text, x + 40, y + 37, (this.rows + column) % 2 === 1 ? "on-light" : "on-dark");
      else if (style === "drop") put(text, x, y + 64 + size * 0.85);
      else if (this.hexagonal) put(text, x - HEX_WIDTH * 0.42, y - HEX_RADIUS * 1.42);
      else put(text, x, -size * 0.85);
    });
    shown(rows).forEach((text, row) => {
      const [x, y] = this.centreAt(row, 0);
      if (style === "checkered") put(text, x - 40, y - 36, row % 2 === 1 ? "on-dark" : "on-light");
      else if (this.hexagonal) put(text, x - HEX_WIDTH * 0.92, y - HEX_RADIUS * 0.1);
      else put(text, -size * 0.85, y);
    });
  }

  addTarget(place) {
    const key = `p${place}`;
    const [row, column] = this.rowAndColumn(place);
    const element = this.cellShape(row, column, { class: "target", "data-key": key });
    this.layers.hit.append(element);
    this.targets.set(key, { key, element });
  }

  /** The label of a cell: "e4", or column and row where rows have no labels. */
  nameOf(key) {
    const place = Number(key.slice(1));
    const [row, column] = [Math.floor(place / this.columns), place % this.columns];
    const { columns, rows } = this.grid;
    if (this.isBetween(place)) return this.nameBetween(row, column);
    if (rows.length > 0) return `${columns[column]}${rows[row]}`;
    return `column ${columns[column]}, row ${this.rows - row} from below`;
  }

  /** The name of what lies between cells, by the cells beside it: "between a1 and b1", "at the border of a1". */
  nameBetween(row, column) {
    const { columns, rows } = this.grid;
    const near = [-1, 0, 1].flatMap((down) => [-1, 0, 1].map((right) => [row + down, column + right]));
    const names = near.filter(([r, c]) => rows[r] && columns[c]).map(([r, c]) => `${columns[c]}${rows[r]}`);
    return names.length > 1 ? `between ${names.join(" and ")}` : `at the border of ${names.join("")}`;
  }

  /** What stands on a target. */
  contentOf(key, view) {
    const piece = view.board.cells[Number(key.slice(1))];
    return piece === null ? "free" : view.board.pieces[piece].name;
  }

  /** The target that is meant by a click: in a rack, the cell of that column where a piece can come to lie. */
  resolve(key, open) {
    if (this.grid.style !== "drop" || open.has(key)) return key;
    const column = Number(key.slice(1)) % this.columns;
    return [...open].find((other) => Number(other.slice(1)) % this.columns === column) ?? key;
  }

  draw(view) {
    this.grid = view.board;
    this.drawPieces(view);
    this.drawMarks(view);
  }

  drawPieces(view) {
    const { cells, pieces } = view.board;
    cells.forEach((piece, place) => {
      // By all that is drawn: a game may list other kinds of pieces in every position.
      const wanted = piece === null ? null : JSON.stringify([pieces[piece], view.colours[pieces[piece].owner]]);
      const old = this.pieces.get(place);
      if ((old?.wanted ?? null) === wanted) return;
      old?.element.remove();
      this.pieces.delete(place);
      if (wanted === null) return;
      const [x, y] = this.centre(`p${place}`);
      const isBetween = this.isBetween(place);
      const scale = isBetween ? "" : ` scale(${this.pieceScale.toFixed(3)})`;
      const element = svg("g", { transform: `translate(${x} ${y})${scale}` });
      element.append(isBetween ? this.drawBar(place, pieces[piece], view.colours) : drawPiece(pieces[piece], view.colours));
      this.layers.piece.append(element);
      this.pieces.set(place, { wanted, element });
    });
  }

  /** What lies between cells fills its row or column. */
  drawBar(place, piece, colours) {
    const [row, column] = this.rowAndColumn(place);
    const [width, height] = [this.xs[column + 1] - this.xs[column], this.ys[row + 1] - this.ys[row]];
    const bar = svg("rect", { class: "bar", x: -width / 2, y: -height / 2, width, height });
    return svg("g", { class: `piece colour-${colours[piece.owner] ?? "none"}` }, bar);
  }

  /** The element of the piece on a target, to be moved by hand or animation. */
  pieceAt(key) {
    return this.pieces.get(Number(key.slice(1)))?.element.firstElementChild ?? null;
  }

  drawMarks(view) {
    const { mark, heat } = this.layers;
    mark.replaceChildren();
    this.root.querySelector(".layer-over")?.remove();
    const over = svg("g", { class: "layer-over" });
    heat.before(over);
    const cell = (key, attributes) => this.cellShape(...this.rowAndColumn(Number(key.slice(1))), attributes);
    const ring = (key, attributes) => {
      const [cx, cy] = this.centre(key);
      return svg("circle", { cx, cy, ...attributes });
    };
    const onPieces = this.grid.style !== "checkered";
    for (const spot of view.last) {
      const ends = "move" in Object(spot) ? spot.move : "place" in Object(spot) ? [spot.place] : [];
      for (const place of ends) {
        if (!onPieces) mark.append(cell(`p${place}`, { class: "last-cell" }));
        else over.append(ring(`p${place}`, { class: "last-ring", r: this.radius * 0.28 }));
      }
    }
    for (const spot of view.line) {
      // A cross in a tinted square stays clear, where a disc needs a ring.
      const tinted = this.grid.style === "squares" && !this.root.classList.contains("felt");
      if ("place" in Object(spot) && tinted) mark.append(cell(`p${spot.place}`, { class: "line-cell" }));
      else if ("place" in Object(spot))
        over.append(ring(`p${spot.place}`, { class: "line-ring", r: this.radius * 0.66 }));
    }
    for (const { at, meaning } of view.marks) {
      if (!("place" in Object(at))) continue;
      const element =
        meaning === "check" ? ring(`p${at.place}`, { class: "mark-check", r: 48 }) : this.drawMark(at.place);
      element.append(svg("title", {}, meaning));
      (meaning === "check" ? mark : over).append(element);
    }
  }

  drawMark(place) {
    const [x, y] = this.centre(`p${place}`);
    const half = this.radius * 0.3;
    return svg("rect", { class: "mark", x: x - half, y: y - half, width: 2 * half, height: 2 * half });
  }
}
