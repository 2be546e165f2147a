// The workers of runs on other machines: their names, their rates, and when they were last heard of.

import { request } from "./api.js";
import { html, reconcile, setText } from "./dom.js";
import { attempt } from "./messages.js";
import { counted, percent, short } from "./wording.js";

/** Milliseconds between two looks at the workers, who report as often. */
const POLL = 2000;

const COLUMNS = ["Worker", "Weights", "Games", "Games a second", "Samples a second", "Limited by", "Last sign of life"];

/** A number with one digit after the point. */
const rate = (number) => number.toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** How long ago a status came, in words that do not change from one look to the next. */
const ago = (seconds) => (seconds < 4 ? "now" : `${Math.round(seconds)} s ago`);

export class Workers {
  constructor() {
    this.root = html("div", { class: "clusters" });
    this.poll();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
  }

  async poll() {
    if (!document.hidden) {
      const clusters = await attempt(() => request("GET", "/api/clusters"));
      if (this.closed) return;
      if (clusters) this.draw(clusters);
      if (clusters?.length === 0) return;
    }
    this.timer = setTimeout(() => this.poll(), POLL);
  }

  draw(clusters) {
    reconcile(
      this.root,
      clusters,
      ({ address }) => address,
      ({ address }) => this.makeBox(address),
      (box, cluster) => this.drawBox(box, cluster),
    );
  }

  makeBox(address) {
    const head = html("tr", {}, ...COLUMNS.map((name) => html("th", { scope: "col" }, name)));
    return html(
      "section",
      { class: "card-box cluster", "aria-label": `Workers of ${address}` },
      html("h2", {}, address),
      html("p", { class: "status" }),
      html("div", { class: "table-scroll" }, html("table", {}, html("thead", {}, head), html("tbody", {}))),
    );
  }

  drawBox(box, { error, weights, queued_chunks: queued, workers = [] }) {
    const [, status, scroll] = box.children;
    const sum = (field) => workers.reduce((all, worker) => all + worker[field], 0);
    setText(
      status,
      error ??
        `${counted(workers.length, "worker")}: ${rate(sum("games_per_second"))} games a second, ` +
          `${short(sum("samples_per_second"))} samples a second; weights ${weights}, ${counted(queued, "chunk")} queued`,
    );
    status.dataset.kind = error ? "refused" : "wait";
    scroll.hidden = workers.length === 0;
    reconcile(
      scroll.querySelector("tbody"),
      workers,
      ({ name }, index) => `${name} ${index}`,
      () => html("tr", {}, html("th", { scope: "row" }), ...COLUMNS.slice(1).map(() => html("td", {}))),
      (row, worker) => {
        const cells = [
          worker.name,
          String(worker.weights),
          short(worker.games),
          rate(worker.games_per_second),
          short(worker.samples_per_second),
          `${worker.limited_by} (${percent(worker.share)})`,
          ago(worker.seconds_ago),
        ];
        for (const [index, text] of cells.entries()) setText(row.children[index], text);
      },
    );
  }
}
