// The players of a table, and the value of a position as a bar.

import { edgeValue } from "./chart.js";
import { html, reconcile, setText } from "./dom.js";
import { capital, counted, playerName, signed } from "./wording.js";

/** How a seat is played, in a few words. */
function seatText({ kind, label, simulations, seconds, ponder }, isOnlyPerson) {
  if (kind === "human") return isOnlyPerson ? "you" : "a person";
  const strength = [
    simulations && counted(simulations, "simulation"),
    seconds && counted(seconds, "second"),
    ponder && "ponders",
  ].filter(Boolean);
  return [label, ...strength].join(", ");
}

export class PlayerList {
  constructor() {
    this.root = html("ul", { class: "players" });
  }

  draw(live, shown) {
    const people = live.players.filter(({ kind }) => kind === "human").length;
    reconcile(
      this.root,
      live.players,
      ({ player }) => player,
      () =>
        html(
          "li",
          {},
          html("span", { class: "dot", "aria-hidden": "true" }),
          html("span", { class: "player-name" }),
          html("span", { class: "player-seat" }),
          html("span", { class: "player-value" }),
        ),
      (row, player) => {
        const [dot, name, seat] = row.children;
        const colour = shown.view.colours[player.player] ?? player.colour;
        dot.className = `dot colour-${colour ?? "none"}`;
        setText(name, live.players.length === 2 && colour ? capital(colour) : playerName(live, player.player));
        setText(seat, seatText(player, people === 1));
        row.title = player.aim ?? "";
        row.classList.toggle("to-move", shown.turn.kind === "player" && shown.turn.player === player.player);
        const winners = shown.turn.kind === "over" ? (shown.winners ?? live.winners ?? []) : [];
        row.classList.toggle("winner", winners.includes(player.player));
      },
    );
  }

  /** The expected result of every player, or null for none. */
  setValues(values) {
    for (const [player, row] of [...this.root.children].entries()) {
      setText(row.lastElementChild, values ? signed(values[player]) : "");
    }
  }
}

export class ValueBar {
  constructor() {
    this.upper = html("div", { class: "value-part" });
    this.lower = html("div", { class: "value-part" });
    this.root = html("div", { class: "value-bar", role: "img", hidden: true }, this.upper, this.lower);
  }

  /**
   * The share of each of two players; the first is below, or above on a board turned by half. `points` make a value of 1; null where values are
   * not in points.
   */
  draw(values, colours, flipped, points = null) {
    this.root.hidden = !values || values.length !== 2;
    if (this.root.hidden) return;
    const below = flipped ? 1 : 0;
    const share = (1 + Math.max(-1, Math.min(1, values[below] / edgeValue(points)))) / 2;
    const text = `${capital(colours[0] ?? "first")} ${signed(values[0])}${points === null ? "" : " points"}`;
    if (this.root.getAttribute("aria-label") !== text) this.root.setAttribute("aria-label", text);
    this.root.title = text;
    this.upper.className = `value-part colour-${colours[1 - below] ?? "none"}`;
    this.lower.className = `value-part colour-${colours[below] ?? "none"}`;
    this.upper.style.flexGrow = String(1 - share);
    this.lower.style.flexGrow = String(share);
  }
}
