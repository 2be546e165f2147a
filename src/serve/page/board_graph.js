// Complete and other graphs: vertices on a circle, edges that are free or taken.

import { svg } from "./dom.js";

const RADIUS = 460;

export class GraphSurface {
  constructor(view) {
    this.board = view.board;
    this.radius = Math.max(18, Math.min(40, 560 / Math.max(1, this.board.vertices)));
    this.targets = new Map();
    this.layers = {};
    for (const name of ["ground", "mark", "edge", "heat", "hit"])
      this.layers[name] = svg("g", { class: `layer-${name}` });
    this.root = svg("svg", { class: "board graph", viewBox: "-530 -530 1060 1060" });
    this.root.append(...Object.values(this.layers));
    this.edges = new Map();
    for (const { ends } of this.board.edges) this.addEdge(ends);
    for (let vertex = 0; vertex < this.board.vertices; vertex++) this.addVertex(vertex);
  }

  static key(view) {
    return JSON.stringify([view.board.vertices, view.board.edges.map(({ ends }) => ends)]);
  }

  vertexAt(vertex) {
    const angle = (2 * Math.PI * vertex) / this.board.vertices - Math.PI / 2;
    return [RADIUS * Math.cos(angle), RADIUS * Math.sin(angle)];
  }

  addEdge([a, b]) {
    const key = `e${a}-${b}`;
    const [[x1, y1], [x2, y2]] = [this.vertexAt(a), this.vertexAt(b)];
    const line = svg("line", { class: "edge", x1, y1, x2, y2 });
    this.layers.edge.append(line);
    this.edges.set(key, line);
    // Vertices cover the ends, so that a click there means the vertex.
    const element = svg("line", { class: "target edge-target", "data-key": key, x1, y1, x2, y2 });
    this.layers.hit.append(element);
    this.targets.set(key, { key, element, pointerOnly: true });
  }

  addVertex(vertex) {
    const key = `v${vertex}`;
    const [cx, cy] = this.vertexAt(vertex);
    const element = svg("circle", {
      class: "target vertex-target",
      "data-key": key,
      cx,
      cy,
      r: Math.max(34, this.radius),
    });
    this.layers.hit.append(
      svg("circle", { class: "vertex", cx, cy, r: this.radius }),
      svg("text", { class: "vertex-label", x: cx, y: cy, dy: "0.36em" }, String(vertex)),
      element,
    );
    this.targets.set(key, { key, element });
  }

  /** The middle of a vertex, or of an edge at a third, where fewer edges cross. */
  centre(key) {
    if (key[0] === "v") return this.vertexAt(Number(key.slice(1)));
    const [a, b] = key.slice(1).split("-").map(Number);
    const [[x1, y1], [x2, y2]] = [this.vertexAt(a), this.vertexAt(b)];
    return [x1 + (x2 - x1) * 0.36, y1 + (y2 - y1) * 0.36];
  }

  nameOf(key) {
    return key[0] === "v" ? `vertex ${key.slice(1)}` : `edge ${key.slice(1)}`;
  }

  contentOf(key, view) {
    const { edges, pieces } = view.board;
    if (key[0] === "e") {
      const edge = edges.find(({ ends }) => `e${ends[0]}-${ends[1]}` === key);
      return edge?.piece === null || edge === undefined ? "free" : `taken by ${pieces[edge.piece].name}`;
    }
    const vertex = Number(key.slice(1));
    const free = edges.filter(({ ends, piece }) => piece === null && ends.includes(vertex)).length;
    return free === 1 ? "1 free edge" : `${free} free edges`;
  }

  resolve(key) {
    return key;
  }

  draw(view) {
    this.board = view.board;
    const { mark } = this.layers;
    mark.replaceChildren();
    for (const { ends, piece } of this.board.edges) {
      const line = this.edges.get(`e${ends[0]}-${ends[1]}`);
      const owner = piece === null ? null : this.board.pieces[piece].owner;
      line.setAttribute("class", owner === null ? "edge" : `edge taken colour-${view.colours[owner] ?? "none"}`);
    }
    // Taken edges lie above free ones.
    for (const line of this.edges.values()) if (line.classList.contains("taken")) this.layers.edge.append(line);
    const halo = (spot, name) => {
      if (!("edge" in Object(spot))) return;
      const [a, b] = spot.edge;
      const [[x1, y1], [x2, y2]] = [this.vertexAt(a), this.vertexAt(b)];
      mark.append(svg("line", { class: name, x1, y1, x2, y2 }));
    };
    view.last.forEach((spot) => halo(spot, "last-edge"));
    view.line.forEach((spot) => halo(spot, "line-edge"));
    view.marks.forEach(({ at }) => halo(at, "mark-edge"));
  }

  pieceAt(key) {
    return this.edges.get(key) ?? null;
  }
}
