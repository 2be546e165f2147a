// Self-play games of a run, replayed on a small board.

import { createTable, fullView, removeTable, request } from "./api.js";
import { Board } from "./board.js";
import { button, html, setText } from "./dom.js";
import { attempt } from "./messages.js";
import { go } from "./route.js";
import { counted, playerName, resultText } from "./wording.js";

/** Milliseconds per ply. */
const TEMPO = 700;
/** Milliseconds that the end of a game is shown. */
const REST = 2500;

export class Replay {
  constructor() {
    this.board = new Board({ onAction: () => {} });
    this.epochs = html("select", {
      "aria-label": "Epoch of the games",
      onchange: () => this.loadGames(Number(this.epochs.value)),
    });
    this.games = html("select", { "aria-label": "Game", onchange: () => this.open(Number(this.games.value)) });
    this.toggle = button("Pause", () => this.setRunning(!this.running));
    this.analyse = button("Open on the board", () => this.openTable());
    this.status = html("p", { class: "status" });
    this.root = html(
      "section",
      { class: "card-box replay", "aria-label": "Self-play games", hidden: true },
      html("div", { class: "box-head" }, html("h2", {}, "Self-play games")),
      html(
        "div",
        { class: "replay-body" },
        this.board.root,
        html(
          "div",
          { class: "replay-side" },
          html("label", {}, "Epoch ", this.epochs),
          html("label", {}, "Game ", this.games),
          this.status,
          html("div", { class: "play-buttons" }, this.toggle, this.analyse),
        ),
      ),
    );
    this.running = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    setText(this.toggle, this.running ? "Pause" : "Play");
  }

  close() {
    this.closed = true;
    this.leave();
  }

  /** Gives the table of the game that was shown back. */
  leave() {
    clearTimeout(this.timer);
    if (this.table) removeTable(this.table).catch(() => {});
    this.table = null;
  }

  /** Shows games of a run, those of a new epoch after the present game if the newest were shown so far. */
  async follow(run, epochs) {
    const key = `${run?.id}/${epochs}`;
    if (key === this.key) return;
    const sameRun = run?.id === this.run?.id;
    [this.key, this.run] = [key, run];
    if (!run) {
      this.leave();
      this.root.hidden = true;
      return;
    }
    const list = await attempt(() => request("GET", `/api/runs/${encodeURIComponent(run.id)}/games`));
    if (!list || this.closed || key !== this.key) return;
    this.root.hidden = list.length === 0;
    this.newest = list[0]?.epoch ?? this.epoch;
    const chosen = Number(this.epochs.value);
    const keep = sameRun && this.table && list.some(({ epoch }) => epoch === chosen);
    this.epochs.replaceChildren(
      ...list.map(({ epoch }) => html("option", { value: epoch, selected: keep && epoch === chosen }, String(epoch))),
    );
    if (list.length > 0 && !keep) await this.loadGames(list[0].epoch);
  }

  async loadGames(epoch) {
    const { run } = this;
    const list = await attempt(() => request("GET", `/api/runs/${encodeURIComponent(run.id)}/games/${epoch}`));
    if (!list || this.closed || run !== this.run) return;
    this.epoch = epoch;
    this.list = list;
    this.epochs.value = String(epoch);
    this.wasNewest = epoch === this.newest;
    this.games.replaceChildren(
      ...list.map(({ plies }, index) => html("option", { value: index }, `${index + 1}: ${counted(plies, "move")}`)),
    );
    if (list.length > 0) await this.open(0);
  }

  async open(index) {
    this.leave();
    const { run, epoch } = this;
    const { slot, game } = this.list[index];
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const table = await attempt(() => createTable({ stored: { run: run.id, epoch, slot, game } }));
    if (!table) return;
    if (this.closed || run !== this.run || turn !== this.turn) {
      removeTable(table).catch(() => {});
      return;
    }
    this.games.value = String(index);
    this.index = index;
    this.table = table;
    this.ply = 0;
    await this.step(0);
  }

  async step(ply) {
    clearTimeout(this.timer);
    const { table } = this;
    const state = await attempt(() => request("GET", `/api/tables/${encodeURIComponent(table.id)}?ply=${ply}`));
    if (!state || table !== this.table) return;
    this.ply = ply;
    const over = ply === table.plies;
    this.board.update(fullView(state.view), {
      playable: false,
      flipped: false,
      seat: null,
      playerName: (player) => playerName(table, player),
      animate: ply > 0,
      label: `Self-play game, ply ${ply}`,
    });
    setText(this.status, over ? resultText(table) || "The end of the record." : `Ply ${ply} of ${table.plies}`);
    if (this.running) this.timer = setTimeout(() => this.goOn(), over ? REST : TEMPO);
  }

  goOn() {
    if (!this.table || document.hidden) {
      this.timer = setTimeout(() => this.goOn(), TEMPO);
      return;
    }
    if (this.ply < this.table.plies) this.step(this.ply + 1);
    else if (this.wasNewest && this.epoch !== this.newest) this.loadGames(this.newest);
    else this.open((this.index + 1) % this.list.length);
  }

  setRunning(running) {
    this.running = running;
    setText(this.toggle, running ? "Pause" : "Play");
    clearTimeout(this.timer);
    if (running && this.table) this.goOn();
  }

  /** Opens the game as a table, to step through it, analyse and review it. */
  openTable() {
    if (!this.table) return;
    const { id } = this.table;
    const { ply } = this;
    // The table is no longer the replay's to give back.
    this.table = null;
    go("table", id, { ply: Math.max(0, ply), from: "stored" });
  }
}
