// The screen of runs: curves of several runs together, and self-play games replayed on a board.

import { request } from "./api.js";
import { lineChart } from "./chart.js";
import { html, reconcile } from "./dom.js";
import { attempt } from "./messages.js";
import { Replay } from "./replay.js";
import { Workers } from "./workers.js";
import { note } from "./route.js";
import { counted, gameName, optionsText } from "./wording.js";

/** Milliseconds between two looks at the metrics. */
const POLL = 4000;
/** Runs that are shown together at most: as many as there are colours. */
const MOST_RUNS = 6;

const CHARTS = [
  {
    title: "Outcome errors of the search on solved positions",
    pick: (row) => row.strength?.search_outcome_error,
    percent: true,
  },
  {
    title: "Outcome errors of the policy on solved positions",
    pick: (row) => row.strength?.policy_outcome_error,
    percent: true,
  },
  {
    title: "Score of matches, with the opponents beaten before",
    // One of several players may win few games and lead in points.
    pick: ({ strength }) =>
      strength?.match_score === undefined || strength.lead ? undefined : strength.match_score + (strength.rung?.number ?? 0),
  },
  { title: "Lead over the other seats in points", pick: (row) => row.strength?.lead?.mean },
  { title: "Policy loss (divergence from the search)", pick: (row) => row.losses?.policy_kl },
  { title: "Value loss", pick: (row) => row.losses?.value },
  { title: "Mean plies of a game", pick: (row) => row.mean_game_length },
  { title: "Share of drawn games", pick: (row) => row.draw_share, percent: true },
  { title: "Share of games won by the first player alone", pick: (row) => row.first_player_win_share, percent: true },
  { title: "Simulations a second", pick: (row) => row.simulations_per_second },
];

const AXES = {
  epoch: { text: "epochs", step: 1, of: (row) => row.epoch },
  minutes: { text: "minutes", step: 0, of: (row) => row.seconds / 60 },
};

export class WatchScreen {
  constructor({ parameters }) {
    this.id = "";
    document.title = "Watch – vecaz";
    this.preselected = parameters.get("runs")?.split(",").filter(Boolean) ?? null;
    this.axis = parameters.get("axis") === "minutes" ? "minutes" : "epoch";
    this.rows = new Map();
    this.list = html("div", { class: "run-list", role: "group", "aria-label": "Runs" });
    this.charts = html("div", { class: "charts" });
    this.axisSelect = html(
      "select",
      { "aria-label": "Horizontal axis", onchange: () => this.setAxis() },
      ...Object.entries(AXES).map(([key, { text }]) =>
        html("option", { value: key, selected: key === this.axis }, `over ${text}`),
      ),
    );
    this.replay = new Replay();
    this.workers = new Workers();
    this.root = html(
      "div",
      { class: "screen watch-screen" },
      html("div", { class: "watch-head" }, html("h1", {}, "Runs"), this.axisSelect),
      this.list,
      this.workers.root,
      html("div", { class: "watch-grid" }, this.replay.root, this.charts),
    );
    this.load();
  }

  close() {
    clearTimeout(this.timer);
    this.closed = true;
    this.replay.close();
    this.workers.close();
  }

  async load() {
    this.runs = (await attempt(() => request("GET", "/api/runs"))) ?? [];
    if (this.closed) return;
    if (this.runs.length === 0) {
      this.list.replaceChildren(
        html(
          "p",
          { class: "empty" },
          "There is no run in the folders that vecaz serve was started with. ",
          html("code", {}, "vecaz run"),
          " makes one.",
        ),
      );
      return;
    }
    const known = this.runs.map(({ id }) => id);
    this.chosen = new Set((this.preselected ?? []).filter((id) => known.includes(id)));
    if (this.chosen.size === 0) this.chosen.add(known[0]);
    this.drawList();
    this.poll();
  }

  setAxis() {
    this.axis = this.axisSelect.value;
    this.noteAddress();
    this.drawCharts();
  }

  noteAddress() {
    note("watch", "", { runs: [...this.chosen].join(","), axis: this.axis === "epoch" ? null : this.axis });
  }

  /** The number of a run's colour: its index among the chosen. */
  colour(id) {
    return [...this.chosen].indexOf(id);
  }

  drawList() {
    reconcile(
      this.list,
      this.runs,
      ({ id }) => id,
      ({ id, name, game, options }) =>
        html(
          "label",
          { class: "run-row" },
          html("input", { type: "checkbox", onchange: (event) => this.choose(id, event.target) }),
          html("span", { class: "swatch", "aria-hidden": "true" }),
          html("b", {}, name),
          html("small", {}, [gameName(game), optionsText(options)].filter(Boolean).join(", ")),
          html("small", { class: "epochs" }),
        ),
      (row, { id, epochs }) => {
        const on = this.chosen.has(id);
        row.firstElementChild.checked = on;
        row.children[1].className = on ? `swatch series-${this.colour(id) % MOST_RUNS}` : "swatch";
        row.lastElementChild.textContent = counted(this.rows.get(id)?.length || epochs, "epoch");
      },
    );
  }

  choose(id, box) {
    if (box.checked && this.chosen.size >= MOST_RUNS) {
      const [first] = this.chosen;
      this.chosen.delete(first);
    }
    if (box.checked) this.chosen.add(id);
    else this.chosen.delete(id);
    this.noteAddress();
    this.drawList();
    this.poll();
  }

  /** Reads new rows of the chosen runs, again and again while the page is seen. */
  async poll() {
    clearTimeout(this.timer);
    const turn = (this.turn = (this.turn ?? 0) + 1);
    if (!document.hidden) {
      for (const id of this.chosen) {
        const known = this.rows.get(id) ?? [];
        // The row of an epoch that was cut is replaced once the run is resumed.
        const rows = known.filter((row) => !row.cut);
        const after = rows[rows.length - 1]?.epoch ?? 0;
        const reply = await attempt(() => request("GET", `/api/runs/${encodeURIComponent(id)}/metrics?after=${after}`));
        if (this.closed || turn !== this.turn) return;
        this.rows.set(id, reply ? [...rows, ...reply.rows] : known);
      }
      this.drawList();
      this.drawCharts();
      const newest = [...this.chosen].pop();
      this.replay.follow(this.runs.find((run) => run.id === newest) ?? null, this.rows.get(newest)?.length ?? 0);
    }
    this.timer = setTimeout(() => this.poll(), POLL);
  }

  drawCharts() {
    const { of, text, step } = AXES[this.axis];
    const names = new Map(this.runs.map(({ id, name }) => [id, name]));
    const drawn = CHARTS.map((chart) => {
      const series = [...this.chosen].map((id) => ({
        name: names.get(id),
        index: this.colour(id),
        points: (this.rows.get(id) ?? [])
          .map((row) => [of(row), chart.pick(row)])
          .filter(([, value]) => typeof value === "number"),
      }));
      return { ...chart, series: series.filter(({ points }) => points.length > 0) };
    }).filter(({ series }) => series.length > 0);
    const key = JSON.stringify([
      this.axis,
      drawn.map(({ title, series }) => [title, series.map((one) => [one.name, one.points.length])]),
    ]);
    if (key === this.drawnCharts) return;
    this.drawnCharts = key;
    this.charts.replaceChildren(...drawn.map((chart) => lineChart({ ...chart, xName: text, xStep: step })));
    if (drawn.length === 0 && this.chosen.size > 0) {
      this.charts.replaceChildren(html("p", { class: "empty" }, "The chosen runs have no finished epoch yet."));
    }
  }
}
