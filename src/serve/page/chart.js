// Curves: the value over a game, and metrics over a run.

import { html, setAttributes, svg } from "./dom.js";

/** Maximum number of points at the edge of a drawing: with a doubling cube a value of 1 is more than games are played for. */
const EDGE_POINTS = 3;

/** The value at the edge of a drawing, where `points` make a value of 1; null where values are not in points. */
export const edgeValue = (points) => Math.min(points ?? 1, EDGE_POINTS);

/** Round numbers between two bounds, about `count` of them, at least `least` apart. */
export function ticks(low, high, count, least = 0) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / count));
  const sizes = [1, 2, 5, 10].map((factor) => factor * power).filter((size) => size >= least);
  const step = sizes.find((size) => span / size <= count) ?? Math.max(least, 10 * power);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => (first + index) * step);
}

const tickText = (value) => {
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
  return String(Number(value.toPrecision(3)));
};

const pathOf = (points) =>
  points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

/**
 * Curves over a common axis. `series`: `[{name, points: [[x, y]], index}]`, `index` the number of the colour; `xStep` is the least distance of
 * figures on the axis.
 */
export function lineChart({ title, series, xName, xStep = 0, percent = false }) {
  const [width, height, left, right, top, bottom] = [520, 240, 46, 12, 12, 34];
  const points = series.flatMap((one) => one.points);
  const figure = html("figure", { class: "chart" }, html("figcaption", {}, title));
  const chart = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": `${title}: ${series.map(({ name }) => name).join(", ")}`,
  });
  figure.append(chart);
  if (points.length === 0) return figure;
  // A call takes no hundred thousand arguments.
  const bounds = (axis) =>
    points.reduce(
      ([low, high], point) => [Math.min(low, point[axis]), Math.max(high, point[axis])],
      [Infinity, -Infinity],
    );
  const [x0, x1] = bounds(0);
  let [y0, y1] = bounds(1);
  const pad = (y1 - y0 || Math.abs(y1) || 1) * 0.06;
  [y0, y1] = [y0 >= 0 && y0 < pad * 5 ? 0 : y0 - pad, y1 + pad];
  const x = (value) => left + ((value - x0) / (x1 - x0 || 1)) * (width - left - right);
  const y = (value) => height - bottom - ((value - y0) / (y1 - y0)) * (height - top - bottom);
  for (const value of ticks(y0, y1, 5)) {
    const text = percent ? `${Number((value * 100).toPrecision(3))} %` : tickText(value);
    chart.append(
      svg("line", { class: "grid-line", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      svg("text", { class: "tick end", x: left - 6, y: y(value), dy: "0.34em" }, text),
    );
  }
  for (const value of ticks(x0, x1, 6, xStep)) {
    chart.append(svg("text", { class: "tick", x: x(value), y: height - bottom + 16 }, tickText(value)));
  }
  chart.append(svg("text", { class: "tick end", x: width - right, y: height - 3 }, xName));
  for (const { points: own, index, name } of series) {
    const line = own.map(([px, py]) => [x(px), y(py)]);
    const group = svg("g", { class: `series series-${index % 6}` }, svg("title", {}, name));
    group.append(svg("path", { d: pathOf(line) }));
    if (line.length < 40)
      group.append(...line.map(([cx, cy]) => svg("circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r: 2.6 })));
    const [lastX, lastY] = line[line.length - 1] ?? [];
    if (line.length >= 40) group.append(svg("circle", { cx: lastX, cy: lastY, r: 3 }));
    chart.append(group);
  }
  return figure;
}

/** The value of every position of a game; click or arrow keys choose a ply. */
export class ValueGraph {
  constructor({ onPly }) {
    this.onPly = onPly;
    this.plies = 0;
    this.ply = 0;
    this.drawing = svg("svg", { viewBox: "0 0 400 90", preserveAspectRatio: "none", "aria-hidden": "true" });
    this.root = html(
      "div",
      { class: "value-graph", role: "slider", tabindex: "0", "aria-label": "Ply", "aria-valuemin": 0 },
      this.drawing,
    );
    this.root.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.root.setPointerCapture(event.pointerId);
      this.pointed(event);
    });
    this.root.addEventListener("pointermove", (event) => {
      if (this.root.hasPointerCapture(event.pointerId)) this.pointed(event);
    });
    this.root.addEventListener("keydown", (event) => {
      const steps = {
        ArrowLeft: -1,
        ArrowDown: -1,
        ArrowRight: 1,
        ArrowUp: 1,
        PageUp: -10,
        PageDown: 10,
        Home: -Infinity,
        End: Infinity,
      };
      if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      this.choose(this.ply + steps[event.key]);
    });
  }

  pointed(event) {
    const box = this.root.getBoundingClientRect();
    this.choose(Math.round(((event.clientX - box.left) / box.width) * this.plies));
  }

  choose(ply) {
    const next = Math.max(0, Math.min(this.plies, ply));
    if (next !== this.ply) this.onPly(next);
  }

  /**
   * `values`: a map of plies to the value of the first player; `losses`: a map of plies to what the move there lost. `points` make a value of
   * 1; null where both are not in points.
   */
  draw({ plies, ply, values, losses, text, points = null }) {
    const edge = edgeValue(points);
    [this.plies, this.ply] = [plies, ply];
    setAttributes(this.root, { "aria-valuemax": plies, "aria-valuenow": ply, "aria-valuetext": text });
    const x = (at) => (plies === 0 ? 0 : (at / plies) * 400);
    const y = (value) => 45 - Math.max(-1, Math.min(1, value / edge)) * 41;
    const known = [...values].sort((a, b) => a[0] - b[0]).filter(([at]) => at <= plies);
    const line = known.map(([at, value]) => [x(at), y(value)]);
    const parts = [svg("line", { class: "zero", x1: 0, x2: 400, y1: 45, y2: 45 })];
    if (line.length > 1) {
      const [first, last] = [line[0][0], line[line.length - 1][0]];
      parts.push(
        svg("path", { class: "area", d: `${pathOf(line)}L${last} 45L${first} 45Z` }),
        svg("path", { class: "curve", d: pathOf(line) }),
      );
    }
    for (const [at, loss] of losses) {
      if (loss >= 0.1)
        parts.push(
          svg("line", {
            class: loss >= 0.3 ? "loss big" : "loss",
            x1: x(at + 1),
            x2: x(at + 1),
            y1: 90,
            y2: 90 - Math.min(1, loss / edge) * 40 - 6,
          }),
        );
    }
    parts.push(svg("line", { class: "now", x1: x(ply), x2: x(ply), y1: 0, y2: 90 }));
    this.drawing.replaceChildren(...parts);
  }
}
