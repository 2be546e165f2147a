// What an analysis says, on the board: shares of moves as heat and arrows, and an expected line.

import { svg } from "./dom.js";
import { endOf } from "./spots.js";

/** An arrow between two points, `width` thick, that ends short of the middle of its target. */
function arrow([x1, y1], [x2, y2], width, opacity) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  if (length < 1) return svg("g");
  const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
  const head = Math.min(length * 0.6, width * 2.4 + 14);
  const [tx, ty] = [x2 - ux * 8, y2 - uy * 8];
  const [bx, by] = [tx - ux * head, ty - uy * head];
  const half = head * 0.52;
  return svg(
    "g",
    { opacity },
    svg("line", {
      x1: x1 + ux * 18,
      y1: y1 + uy * 18,
      x2: bx + ux * 2,
      y2: by + uy * 2,
      "stroke-width": width.toFixed(1),
    }),
    svg("polygon", { points: `${tx},${ty} ${bx - uy * half},${by + ux * half} ${bx + uy * half},${by - ux * half}` }),
  );
}

/** A disc with a text. */
function disc([cx, cy], radius, text, opacity) {
  const group = svg("g", {}, svg("circle", { cx, cy, r: radius.toFixed(1), opacity }));
  if (text) {
    const label = svg("text", { x: cx, y: cy, dy: "0.36em" }, text);
    label.style.fontSize = `${(radius * (text.length > 2 ? 0.68 : 0.82)).toFixed(1)}px`;
    group.append(label);
  }
  return group;
}

function drawMark(surface, spot, { weight, text, name }) {
  const opacity = (0.3 + 0.6 * weight).toFixed(2);
  const group = svg("g", { class: `hint ${name}` });
  if ("move" in Object(spot)) {
    const [from, to] = spot.move.map((place) => surface.centre(`p${place}`));
    group.append(arrow(from, to, 7 + 13 * weight, opacity));
    if (text) {
      const middle = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
      group.append(disc(middle, surface.arrowLabel ?? surface.radius * 0.42, text, 1));
    }
    return group;
  }
  if ("edge" in Object(spot)) {
    const [[x1, y1], [x2, y2]] = spot.edge.map((vertex) => surface.centre(`v${vertex}`));
    group.append(svg("line", { x1, y1, x2, y2, "stroke-width": (5 + 13 * weight).toFixed(1), opacity }));
    if (text) group.append(disc(surface.centre(endOf(spot)), 30, text, 1));
    return group;
  }
  const at = endOf(spot) && surface.centre(endOf(spot));
  if (!at) return null;
  group.append(disc(at, surface.radius * (0.62 + 0.2 * weight), text, opacity));
  return group;
}

/** Draws the moves of an analysis: `[{spot, weight, text, name}]`, with weights in 0..1 and the most important last. */
export function drawHeat(surface, marks) {
  const layer = surface.layers?.heat;
  if (layer) layer.replaceChildren(...marks.map((mark) => drawMark(surface, mark.spot, mark)).filter(Boolean));
  // Cards stand in HTML and have their share as a badge.
  const badges = new Map(marks.filter(({ spot }) => "card" in Object(spot)).map((mark) => [endOf(mark.spot), mark]));
  for (const { key, element } of surface.targets.values()) {
    if (key[0] !== "c") continue;
    const badge = badges.get(key);
    if (badge) element.dataset.badge = badge.text;
    else delete element.dataset.badge;
    element.classList.toggle("best", badge?.name === "best");
  }
}

/** Draws an expected line: `[spot]`, numbered from 1. */
export function drawLine(surface, spots) {
  const layer = surface.layers?.heat;
  if (!layer) return;
  const shown = spots.slice(0, 9);
  layer.replaceChildren(
    ...shown
      .map((spot, index) =>
        drawMark(surface, spot, {
          weight: 1 - index / (shown.length + 2),
          text: String(index + 1),
          name: index === 0 ? "line-first" : "line-next",
        }),
      )
      .filter(Boolean)
      .reverse(),
  );
}
