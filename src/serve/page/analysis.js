// The analysis of the position that is shown: live moves with visits, values and expected lines.

import { listen } from "./api.js";
import { button, html, reconcile, setText } from "./dom.js";
import { fittingNetworks, networkLabel } from "./players.js";
import { readSetting, writeSetting } from "./settings.js";
import { percent, short, signed } from "./wording.js";

/** Milliseconds between two reports. */
const INTERVAL = 250;
/** Milliseconds without a report before the panel says that it waits. */
const WAITING_AFTER = 700;
/** The candidate moves in the list, and at most on the board. */
const CANDIDATES = 6;
const ON_BOARD = 24;
const FIGURES = { visits: "share of visits", prior: "prior", value: "value", none: "nothing" };

/** The figures of a move. */
function figuresOf(move, visits) {
  return { visits: visits > 0 ? move.visits / visits : 0, prior: move.prior, value: move.value };
}

/** Moves that hardly count are left out, arrows sooner than discs, since they cross other places. */
function isShown(weight, text, spot, figure) {
  const isArrow = "move" in Object(spot) || "edge" in Object(spot);
  if (isArrow) return weight >= 0.12;
  return figure === "none" ? weight > 0.03 : text !== "" && weight > 0.015;
}

/** The moves of an analysis as marks for the board, the best last. */
export function marksOf(analysis, figure) {
  const { moves } = analysis;
  const visits = moves.reduce((sum, move) => sum + move.visits, 0);
  const searched = visits > 0;
  const weights = moves.map((move) => (figure === "prior" || !searched ? move.prior : move.visits / visits));
  const most = Math.max(...weights, 1e-9);
  const marks = moves.map((move, index) => {
    const figures = figuresOf(move, visits);
    const text = {
      visits: percentShort(figures.visits),
      prior: percentShort(figures.prior),
      value: signed(move.value).replace(/^(\D?)0\./, "$1."),
      none: "",
    }[figure];
    return {
      action: move.action,
      spot: move.spot,
      weight: weights[index] / most,
      text: weights[index] < 0.005 ? "" : text,
      name: index === 0 ? "best" : "other",
    };
  });
  return marks
    .filter(({ name, weight, text, spot }) => name === "best" || isShown(weight, text, spot, figure))
    .slice(0, ON_BOARD)
    .reverse();
}

const percentShort = (share) => (share < 0.005 ? "" : String(Math.round(share * 100)));

export class AnalysisPanel {
  /** `onChange()` is called when marks or values are new; `onLine(spots or null)` with a line to show. */
  constructor({ onChange, onLine }) {
    this.onChange = onChange;
    this.onLine = onLine;
    this.result = null;
    this.position = null;
    this.figure = readSetting("figure") ?? "visits";
    this.toggle = button("", () => this.setOn(!this.on), {
      class: "switch",
      role: "switch",
      "aria-checked": "false",
      "aria-label": "Analysis",
      title: "Analysis (a)",
    });
    this.network = html("select", { "aria-label": "Network of the analysis", onchange: () => this.restart() });
    this.shown = html(
      "select",
      { "aria-label": "Figures on the board", onchange: () => this.choose() },
      ...Object.entries(FIGURES).map(([key, text]) =>
        html("option", { value: key, selected: key === this.figure }, text),
      ),
    );
    this.summary = html("p", { class: "summary" });
    this.body = html("div", { class: "candidates", role: "table", "aria-label": "Candidate moves" });
    this.content = html(
      "div",
      { class: "analysis-body", hidden: true },
      html("div", { class: "analysis-settings" }, this.network, html("label", {}, "on the board", this.shown)),
      this.summary,
      this.body,
    );
    this.root = html(
      "section",
      { class: "card-box analysis", "aria-label": "Analysis" },
      html("div", { class: "box-head" }, html("h2", {}, "Analysis"), this.toggle),
      this.content,
    );
    this.on = false;
    document.addEventListener("visibilitychange", (this.visibility = () => this.restart()));
  }

  close() {
    document.removeEventListener("visibilitychange", this.visibility);
    this.stop?.();
    clearTimeout(this.waiting);
  }

  setNetworks(info, game, options) {
    const networks = fittingNetworks(info, game, options);
    const chosen = this.network.value;
    this.network.replaceChildren(
      html("option", { value: "" }, "network of the table"),
      ...networks.map((network) =>
        html("option", { value: network.id, selected: network.id === chosen }, networkLabel(network)),
      ),
    );
  }

  setOn(on) {
    this.on = on;
    this.toggle.setAttribute("aria-checked", String(on));
    this.content.hidden = !on;
    this.restart();
    this.onChange();
  }

  choose() {
    this.figure = this.shown.value;
    writeSetting("figure", this.figure);
    this.onChange();
  }

  /** Goes to a position: `feed`, `ply`, a `key` that differs for different positions, and `reason` if it cannot be analysed. */
  follow(position) {
    if (this.position?.key === position.key && this.position?.reason === position.reason) return;
    this.position = position;
    this.restart();
  }

  restart() {
    this.stop?.();
    this.stop = null;
    this.result = null;
    const { position } = this;
    this.body.classList.add("stale");
    clearTimeout(this.waiting);
    if (!this.on || !position || document.hidden) return;
    if (position.reason) {
      this.say(position.reason);
      return;
    }
    const path = position.feed.path("/analysis", {
      ply: position.ply,
      network: this.network.value,
      interval: INTERVAL,
      moves: ON_BOARD,
    });
    // What the last position gave stays, greyed, unless the next takes long.
    this.waiting = setTimeout(() => this.say("searching…"), WAITING_AFTER);
    this.stop = listen(
      path,
      {
        analysis: (result) => this.take(result),
        done: (result) => this.finish(result),
        failed: ({ error }) => this.fail(error),
      },
      { refused: () => this.fail("The server refused the analysis.") },
    );
  }

  finish(result) {
    this.stop?.();
    this.stop = null;
    this.take(result);
  }

  fail(error) {
    clearTimeout(this.waiting);
    this.stop?.();
    this.stop = null;
    this.say(error);
  }

  say(sentence) {
    setText(this.summary, sentence);
    this.body.replaceChildren();
    this.onChange();
  }

  take(result) {
    clearTimeout(this.waiting);
    this.result = result;
    this.draw();
    this.onChange();
  }

  /** The marks for the board. */
  marks() {
    return this.on && this.result ? marksOf(this.result, this.figure) : [];
  }

  draw() {
    const { result } = this;
    const ends = { proven: "proven", memory: "the trees are full", time: "time is up", simulations: "done" };
    const parts = [`${short(result.visits)} visits`, `${short(result.simulations_per_second)}/s`];
    if (result.wdl)
      parts.push(`win ${percent(result.wdl[0])}, draw ${percent(result.wdl[1])}, loss ${percent(result.wdl[2])}`);
    if (result.proven) parts.push("proven");
    else if (ends[result.end]) parts.push(ends[result.end]);
    setText(this.summary, parts.join(" · "));
    this.body.classList.remove("stale");
    const visits = result.moves.reduce((sum, move) => sum + move.visits, 0);
    const head = { head: true, action: "head" };
    reconcile(
      this.body,
      [head, ...result.moves.slice(0, CANDIDATES)],
      // One action may be another move in the next position.
      ({ action, name }) => `${action}/${name}`,
      (move) => (move.head ? this.headRow() : this.row(move)),
      (row, move) => !move.head && this.update(row, move, visits),
    );
  }

  headRow() {
    const cells = ["move", "visits", "prior", "value", "expected line"].map((text) =>
      html("span", { role: "columnheader" }, text),
    );
    return html("div", { class: "candidate head", role: "row" }, ...cells);
  }

  row({ name }) {
    const cell = (kind) => html("span", { role: "cell", class: kind });
    const row = html(
      "div",
      { class: "candidate", role: "row", tabindex: "0" },
      html("span", { role: "cell", class: "name" }, name),
      cell("visits"),
      cell("prior"),
      cell("value"),
      cell("line"),
    );
    const show = () => this.onLine(row.line?.map(({ spot }) => spot) ?? null);
    const hide = () => this.onLine(null);
    row.addEventListener("pointerenter", show);
    row.addEventListener("pointerleave", hide);
    row.addEventListener("focus", show);
    row.addEventListener("blur", hide);
    return row;
  }

  update(row, move, visits) {
    const [, share, prior, value, line] = row.children;
    setText(share, percent(visits > 0 ? move.visits / visits : 0));
    setText(prior, percent(move.prior));
    setText(value, signed(move.value));
    setText(
      line,
      move.line
        .slice(1)
        .map(({ name }) => name)
        .join(" "),
    );
    row.line = move.line;
  }
}
