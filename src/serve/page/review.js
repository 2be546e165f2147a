// The review of a whole game: what every move lost, and the mistakes.

import { listen } from "./api.js";
import { button, html, setText } from "./dom.js";
import { BLUNDER, MISTAKE } from "./moves.js";
import { signed } from "./wording.js";

const EFFORTS = [50, 200, 800];

export class ReviewPanel {
  /** `onChange()` is called when there is more to show, `onPly(ply)` to go to a mistake. */
  constructor({ onChange, onPly }) {
    this.onChange = onChange;
    this.onPly = onPly;
    this.plies = new Map();
    this.effort = html(
      "select",
      { "aria-label": "Simulations per position" },
      ...EFFORTS.map((number) => html("option", { value: number, selected: number === 200 }, `${number} simulations`)),
    );
    this.begin = button("Review the game", () => this.start(), { class: "primary small" });
    this.progress = html("progress", { max: 1, value: 0, hidden: true, "aria-label": "Progress of the review" });
    this.text = html("p", { class: "summary" });
    this.list = html("ol", { class: "mistakes" });
    this.root = html(
      "section",
      { class: "card-box review", "aria-label": "Review" },
      html("div", { class: "box-head" }, html("h2", {}, "Review"), this.effort, this.begin),
      this.progress,
      this.text,
      this.list,
    );
  }

  close() {
    this.stop?.();
    this.stop = null;
  }

  /** The table to review; `names` gives the name of a player. */
  follow({ feed, key, names, reason }) {
    Object.assign(this, { feed, names });
    this.begin.disabled = Boolean(reason);
    this.begin.title = reason ?? "Review (r)";
    if (this.key !== undefined && this.key !== key) this.forget(key);
    this.key = key;
  }

  /** What was found holds for plies of the same game only: those before `key` differs stay. */
  forget(key) {
    const [old, now] = [this.key.split(" "), key.split(" ")];
    let same = 0;
    while (same < old.length && same < now.length && old[same] === now[same]) same++;
    if (same === old.length) return;
    this.close();
    this.progress.hidden = true;
    for (const ply of [...this.plies.keys()]) if (ply >= same) this.plies.delete(ply);
    this.showMistakes();
  }

  start() {
    if (this.begin.disabled || !this.feed) return;
    this.close();
    this.plies.clear();
    this.list.replaceChildren();
    this.progress.hidden = false;
    this.progress.removeAttribute("value");
    setText(this.text, "");
    const end = (sentence) => {
      this.close();
      this.progress.hidden = true;
      if (sentence !== undefined) setText(this.text, sentence);
    };
    this.stop = listen(
      this.feed.path("/review", { simulations: this.effort.value }),
      {
        ply: (found) => {
          this.plies.set(found.ply, found);
          this.progress.value = found.done / found.total;
          this.onChange();
        },
        done: (summary) => {
          end();
          this.finish(summary);
        },
        failed: ({ error }) => end(error),
      },
      { refused: () => end("The server refused the review.") },
    );
  }

  finish({ mean_loss: means, seconds }) {
    const known = means.map((loss, player) => ({ loss, player })).filter(({ loss }) => loss !== null);
    const each = known.map(({ loss, player }) => `${this.names(player)} ${loss.toFixed(3)}`).join(", ");
    setText(this.text, `Mean loss per move: ${each || "not known"}. ${seconds.toFixed(1)} s.`);
    this.showMistakes();
    this.onChange();
  }

  showMistakes() {
    const mistakes = [...this.plies.values()]
      .filter(({ loss }) => loss !== null && loss >= MISTAKE)
      .sort((a, b) => b.loss - a.loss)
      .slice(0, 20);
    const row = ({ ply, player, loss, played, best }) => {
      const jump = button("", () => this.onPly(ply), {
        class: `mistake-row ${loss >= BLUNDER ? "blunder" : "mistake"}`,
      });
      jump.append(
        html("b", {}, `${ply + 1}. ${played.name}`),
        html("span", {}, ` ${this.names(player)} loses ${loss.toFixed(2)}; best ${best.name} (${signed(best.value)})`),
      );
      return html("li", {}, jump);
    };
    this.list.replaceChildren(...mistakes.map(row));
    if (this.plies.size > 0 && mistakes.length === 0) {
      this.list.replaceChildren(html("li", { class: "quiet" }, `No move loses ${MISTAKE} or more.`));
    }
  }

  /** Losses by ply, where they are known. */
  losses() {
    return new Map([...this.plies].filter(([, { loss }]) => loss !== null).map(([ply, { loss }]) => [ply, loss]));
  }

  /** Best and played move of a ply as marks for the board. */
  marks(ply) {
    const found = this.plies.get(ply);
    if (!found) return [];
    const { best, played, loss } = found;
    const mark = (move, name) => ({
      action: move.action,
      spot: move.spot,
      weight: 0.7,
      text: name === "best" ? "✓" : "?",
      name,
    });
    if (best.action === played.action || (loss !== null && loss < 0.02)) return [mark(best, "best")];
    return [mark(played, loss >= MISTAKE ? "bad" : "other"), mark(best, "best")];
  }

  /** A sentence on the move of a ply. */
  sentence(ply) {
    const found = this.plies.get(ply);
    if (!found) return "";
    const { best, played, loss } = found;
    if (best.action === played.action) return `Played ${played.name}, the best move (${signed(best.value)}).`;
    const better = `best is ${best.name} (${signed(best.value)}).`;
    if (loss === null) return `Played ${played.name}, which was not searched; ${better}`;
    return `Played ${played.name} (${signed(played.value)}), which loses ${loss.toFixed(2)}; ${better}`;
  }
}
