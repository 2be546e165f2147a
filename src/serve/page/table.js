// A table: the board with its game, played, analysed and reviewed.

import { keysOf, createTable, request, serverInfo } from "./api.js";
import { AnalysisPanel } from "./analysis.js";
import { Board } from "./board.js";
import { ValueGraph } from "./chart.js";
import { html, setText } from "./dom.js";
import { announce, attempt, show } from "./messages.js";
import { MoveList } from "./moves.js";
import { TableFeed, commonPlies } from "./feed.js";
import { PlayerList, ValueBar } from "./player_list.js";
import { ReviewPanel } from "./review.js";
import { go, hashOf, note, positionHash } from "./route.js";
import { TableControls } from "./table_controls.js";
import { capital, gameName, optionsText, playerName, resultText } from "./wording.js";

/** Milliseconds before a thinking engine is shown, so that quick ones do not flicker. */
const THINKING_AFTER = 300;

/** True if a board is turned by half for the second of two players. */
const turnsFor = (kind) => kind === "slots" || kind === "checkered";

/** The ply that an address names; null for the newest, also where it is no number. */
const plyOf = (parameters) => {
  const ply = Number.parseInt(parameters.get("ply"), 10);
  return Number.isNaN(ply) ? null : ply;
};

/** A view of cards that lie face down. */
function withoutHands(view) {
  if (view.board.kind !== "cards") return view;
  const seats = view.board.seats.map((seat) => ({ ...seat, hand: [], hidden: seat.hidden + seat.hand.length }));
  return { ...view, board: { ...view.board, seats } };
}

export class TableScreen {
  constructor({ id, parameters }) {
    this.id = id;
    this.keys = keysOf(id);
    const given = parameters.get("seat");
    this.seat = given !== null ? Number(given) : this.keys.findIndex(Boolean);
    if (this.seat < 0) this.seat = null;
    this.from = parameters.get("from");
    this.ply = plyOf(parameters);
    this.flipped = null;
    this.values = new Map();
    this.hint = null;
    this.build();
    if (parameters.get("analysis") === "1") this.analysis.setOn(true);
    this.connect();
    this.loadInfo();
    document.addEventListener("keydown", (this.typing = (event) => this.typed(event)));
  }

  build() {
    this.board = new Board({ onAction: (action) => this.act(action) });
    this.bar = new ValueBar();
    this.players = new PlayerList();
    this.status = html("p", { class: "status" });
    this.banner = html("p", { class: "banner", hidden: true });
    this.notes = html("div", { class: "notes" });
    this.graph = new ValueGraph({ onPly: (ply) => this.show(ply) });
    this.moves = new MoveList({ onPly: (ply) => this.show(ply) });
    this.analysis = new AnalysisPanel({
      onChange: () => this.drawOpinion(),
      onLine: (spots) => this.board.setLine(spots),
    });
    this.review = new ReviewPanel({ onChange: () => this.drawOpinion(), onPly: (ply) => this.show(ply) });
    this.controls = new TableControls(this);
    this.title = html("h1", { class: "table-title" });
    this.root = html(
      "div",
      { class: "screen table-screen" },
      html(
        "div",
        { class: "table-main" },
        this.banner,
        html("div", { class: "table-board" }, this.bar.root, this.board.root),
        this.controls.steps,
        this.notes,
      ),
      html(
        "aside",
        { class: "table-side" },
        html(
          "section",
          { class: "card-box game-box", "aria-label": "Game" },
          this.title,
          this.players.root,
          this.status,
          this.controls.play,
        ),
        this.analysis.root,
        html("section", { class: "card-box moves-box", "aria-label": "Moves" }, this.graph.root, this.moves.root),
        this.review.root,
        this.controls.more,
      ),
    );
  }

  connect() {
    this.feed?.close();
    this.feed = new TableFeed({
      id: this.id,
      seat: this.seat,
      key: this.seat === null ? null : this.keys[this.seat],
      onState: (state) => this.take(state),
      onLost: (lost) => this.setLost(lost),
      onEnd: (reason) => this.end(reason),
    });
  }

  async loadInfo() {
    this.info = await attempt(() => serverInfo());
    if (this.info && this.live) this.setNetworks();
    if (this.info && this.shown) this.controls.draw();
  }

  setNetworks() {
    const { game, options } = this.live;
    const key = `${game}/${JSON.stringify(options)}`;
    if (!this.info || this.networksFor === key) return;
    this.networksFor = key;
    this.analysis.setNetworks(this.info, game, options);
  }

  close() {
    this.feed.close();
    this.analysis.close();
    this.review.close();
    clearTimeout(this.thinkingTimer);
    document.removeEventListener("keydown", this.typing);
  }

  reroute({ parameters }) {
    const ply = plyOf(parameters);
    if (ply !== this.ply) this.show(ply ?? this.live?.plies ?? 0);
  }

  setLost(lost) {
    if (lost === this.isLost) return;
    this.isLost = lost;
    this.drawBanner();
  }

  end(reason) {
    this.ended = reason;
    if (this.shown) this.draw();
    this.drawBanner();
    if (!this.live) {
      show(reason);
      this.root.replaceChildren(
        html("p", { class: "empty" }, reason, " ", html("a", { href: "#/play" }, "Start a new game")),
      );
    }
  }

  /** A new state of the table. */
  take(state) {
    const before = this.live;
    this.live = state;
    if (!before) {
      document.title = `${gameName(state.game)} – vecaz`;
      this.title.replaceChildren(gameName(state.game), " ", html("small", {}, optionsText(state.options)));
      this.setNetworks();
      if (this.ply !== null && this.ply >= state.plies) this.ply = null;
      if (this.ply === null && state.turn.kind === "over" && state.plies > 0 && this.from === "stored") this.ply = 0;
    }
    // Another line may have as many plies.
    const common = before ? commonPlies(before, state) : 0;
    const goesOn = before !== undefined && common === before.plies;
    if (goesOn && state.plies > before.plies) this.speak(before, state);
    if (before && !(goesOn && state.plies === before.plies)) this.hint = null;
    if (state.error && state.error !== before?.error) show(state.error);
    if (before && !goesOn) {
      for (const ply of [...this.values.keys()]) if (ply > common) this.values.delete(ply);
      if (this.ply !== null && (this.ply > common || this.ply >= state.plies)) this.ply = null;
    }
    if (this.ply === null) this.display(state, { animate: goesOn && state.plies - before.plies === 1 });
    else if (this.shown) this.draw();
    else this.show(this.ply);
  }

  /** Tells what was played to those who do not see the board. */
  speak(before, state) {
    const played = state.history.slice(before.plies).filter(({ hidden, name }) => !hidden && name);
    const words = played
      .slice(-4)
      .map(({ kind, player, name }) => (kind === "chance" ? name : `${playerName(state, player)}: ${name}`));
    announce([...words, resultText(state)].filter(Boolean).join(". "));
  }

  /** Shows the position after `ply` plies; the last one is followed as the game goes on. */
  async show(ply) {
    if (!this.live) return;
    const next = Math.max(0, Math.min(this.live.plies, ply));
    this.ply = next === this.live.plies ? null : next;
    this.noteAddress();
    if (this.ply === null) {
      this.display(this.live, { animate: false });
      return;
    }
    const wanted = this.ply;
    const state = await attempt(() => this.feed.at(wanted));
    if (state && this.ply === wanted) this.display(state, { animate: false });
  }

  noteAddress() {
    note("table", this.id, {
      seat: this.seatInAddress(),
      ply: this.ply,
      from: this.from,
      analysis: this.analysis.on ? "1" : null,
    });
  }

  /** A seat stands in the address only where several of them are ours. */
  seatInAddress() {
    return this.keys.filter(Boolean).length > 1 && this.live?.hidden_information ? this.seat : null;
  }

  display(state, { animate }) {
    this.shown = state;
    this.draw({ animate });
  }

  /** How an action that is chosen on the board is played: "play", in a "branch", or not at all (null). */
  mode() {
    const { live, shown } = this;
    const { turn } = shown;
    if (turn.kind !== "player" || this.pending) return null;
    if (this.ply !== null) return live.hidden_information && live.turn.kind !== "over" ? null : "branch";
    const human = live.players[turn.player].kind === "human";
    const mine = !live.hidden_information || live.viewer === turn.player || live.viewer === "all";
    return human && mine && this.feed.upToDate && !this.ended ? "play" : null;
  }

  draw({ animate = false } = {}) {
    const { live, shown } = this;
    const view = this.handsOver() ? withoutHands(shown.view) : shown.view;
    const isSecond = live.viewer === 1 && live.players.length === 2;
    const kind = view.board.kind === "grid" ? view.board.style : view.board.kind;
    const flipped = this.flipped ?? (isSecond && turnsFor(kind));
    this.isFlipped = flipped;
    this.board.mover = shown.turn.player;
    this.board.update(view, {
      playable: this.mode() !== null,
      flipped,
      seat: typeof live.viewer === "number" ? live.viewer : null,
      playerName: (player) => playerName(live, player),
      animate,
      label: `${gameName(live.game)}, ply ${shown.ply}`,
      lastTrick: this.lastTrick(),
    });
    this.notes.replaceChildren(...view.notes.map((text) => html("p", {}, text)));
    this.players.draw(live, shown);
    this.drawStatus();
    this.drawBanner();
    const losses = this.review.losses();
    this.moves.draw({
      history: live.history,
      ply: shown.ply,
      players: live.players.length,
      losses,
      colours: view.colours,
      points: live.points_of_value,
    });
    this.controls.draw();
    this.follow();
    this.drawOpinion();
  }

  /** True if another person at this device is to move, who must not see the hand of the last one. */
  handsOver() {
    const { live } = this;
    const { kind, player } = live.turn;
    return (
      live.hidden_information &&
      kind === "player" &&
      live.viewer !== "all" &&
      live.viewer !== player &&
      Boolean(this.keys[player])
    );
  }

  /** The cards of the trick before, while the present one is empty. */
  lastTrick() {
    const { live, shown } = this;
    if (shown.view.board.kind !== "cards" || shown.view.board.trick.length > 0) return [];
    const cards = live.history.slice(0, shown.ply).filter(({ spot }) => spot && "card" in Object(spot));
    // A table may have fewer players than the game has seats.
    const plays = cards.filter(({ kind }) => kind === "player").slice(-shown.view.board.seats.length);
    return plays.map(({ player, name, spot }) => ({ player, name, number: spot.card }));
  }

  /** Tells analysis and review which position is shown. */
  follow() {
    const { live, shown, feed } = this;
    const names = live.history.map(({ action }) => action ?? "?");
    const over = live.turn.kind === "over";
    let reason = null;
    if (shown.turn.kind === "over") reason = "The game is over here.";
    else if (shown.turn.kind === "chance") reason = "Chance decides here.";
    else if (live.hidden_information && !over && (this.ply !== null || live.viewer !== shown.turn.player)) {
      reason = "Hidden hands: the analysis is there when you are to move.";
    }
    this.analysis.follow({ feed, ply: shown.ply, reason, key: `${this.seat} ${names.slice(0, shown.ply).join(" ")}` });
    const noReview =
      live.history.length === 0
        ? "No move has been played yet."
        : live.hidden_information && !over
          ? "Hidden hands: a review is there at the end."
          : null;
    this.review.follow({ feed, key: names.join(" "), names: (player) => playerName(live, player), reason: noReview });
  }

  drawStatus() {
    const { live, shown } = this;
    clearTimeout(this.thinkingTimer);
    const set = (text, kind) => {
      setText(this.status, text);
      this.status.dataset.kind = kind;
    };
    if (shown.turn.kind === "over") return set(resultText(shown.returns ? shown : live), "over");
    if (this.ply !== null) {
      const sentence = this.review.sentence(shown.ply);
      const branch = this.mode() === "branch" ? "A move here begins a branch." : "";
      return set(sentence || `Ply ${shown.ply} of ${live.plies}. ${branch}`, "past");
    }
    if (live.turn.kind === "chance") return set("Chance decides.", "wait");
    const { player } = live.turn;
    const name = playerName(live, player);
    if (live.players[player].kind === "human") {
      const alone = live.players.filter(({ kind }) => kind === "human").length === 1;
      const away = live.hidden_information && live.viewer !== player && live.viewer !== "all";
      if (this.handsOver()) return set(`${name} is to move: hand over the device, then show the hand.`, "wait");
      return set(alone && !away ? `Your move: ${name}.` : `${name} to move.`, away ? "wait" : "move");
    }
    if (live.error) return set(`${name} cannot move: ${live.error}`, "refused");
    if (live.paused) return set(`${name} to move; the networks are paused.`, "wait");
    const think = () =>
      set(`${name} thinks${live.thinking?.simulations ? `: ${live.thinking.simulations} simulations` : ""}…`, "think");
    if (this.status.dataset.kind === "think") return think();
    this.thinkingTimer = setTimeout(think, THINKING_AFTER);
    return undefined;
  }

  drawBanner() {
    let content = null;
    if (this.ended) {
      content = [capital(this.ended).replace(/\.?$/, ". ")];
      if (this.live && !this.live.hidden_information) {
        content.push(html("a", { href: positionHash(this.live, this.live.plies) }, "Open this position again"));
      }
    } else if (this.isLost) content = ["The server does not answer; trying again…"];
    else if (this.from && this.from !== "stored") {
      const [table, ply] = this.from.split(".");
      content = [
        `A branch from ply ${ply}. `,
        html("a", { href: hashOf("table", table, { ply }) }, "Back to the game"),
      ];
    }
    this.banner.hidden = content === null;
    this.banner.replaceChildren(...(content ?? []));
  }

  /** Marks on the board, value bar and graph, from analysis, review and hint. */
  drawOpinion() {
    const { live, shown } = this;
    if (!live || !shown) return;
    const { result } = this.analysis;
    if (result) this.values.set(result.ply, result.value);
    for (const [ply, { value }] of this.review.plies) if (!this.values.has(ply)) this.values.set(ply, value);
    if (live.returns)
      this.values.set(
        live.plies,
        live.returns.map((value) => Math.max(-1, Math.min(1, value)) * (live.points_of_value ?? 1)),
      );
    const marks = this.analysis.on
      ? this.analysis.marks()
      : this.ply !== null || this.review.plies.size > 0
        ? this.review.marks(shown.ply)
        : [];
    this.board.setHeat(this.hint && this.ply === null ? this.hint : marks);
    const value = this.analysis.on || this.review.plies.size > 0 ? (this.values.get(shown.ply) ?? null) : null;
    this.bar.draw(value, shown.view.colours, this.isFlipped, live.points_of_value);
    this.players.setValues(value);
    this.graph.draw({
      plies: live.plies,
      ply: shown.ply,
      losses: this.review.losses(),
      values: new Map([...this.values].map(([ply, values]) => [ply, values[0]])),
      text: `ply ${shown.ply} of ${live.plies}`,
      points: live.points_of_value,
    });
    this.moves.reveal(shown.ply);
    if (this.ply !== null) this.drawStatus();
  }

  async act(action) {
    const mode = this.mode();
    if (mode === "play") await this.playHere(action);
    else if (mode === "branch") await this.branch(action);
  }

  /** Plays an action; until the server has answered, nothing else can be chosen. */
  async playHere(action) {
    this.hint = null;
    this.setPending(true);
    await attempt(async () => {
      try {
        await this.feed.change("/play", {
          action: action.action,
          ply: this.live.plies,
          seat: this.live.hidden_information ? this.seat : undefined,
        });
      } catch (error) {
        // The board is where the server is, whatever went wrong.
        if (error.status === 409) this.feed.offer(await request("GET", this.feed.path()));
        throw error;
      }
    });
    this.setPending(false);
  }

  setPending(pending) {
    this.pending = pending;
    this.board.root.setAttribute("aria-busy", String(pending));
    if (this.shown) this.draw();
  }

  /** Plays another move from an earlier position, on a table of its own. */
  async branch(action) {
    const { id, live, shown } = this;
    const seats = live.players.map(() => ({ kind: "human" }));
    const branch = await attempt(async () => {
      const table = await createTable({ from: { table: id, ply: shown.ply }, seats });
      await request("POST", `/api/tables/${table.id}/play`, {
        action: action.action,
        seat: shown.turn.player,
        key: table.keys?.[shown.turn.player],
      });
      return table;
    });
    if (branch) go("table", branch.id, { from: `${id}.${shown.ply}`, analysis: this.analysis.on ? "1" : null });
  }

  /** Looks at the table from another seat of ours. */
  sitDown(seat) {
    this.seat = seat;
    this.live = undefined;
    this.shown = undefined;
    this.ply = null;
    this.connect();
    this.noteAddress();
  }

  typed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || !this.live) return;
    if (event.target.closest?.("input, select, textarea, dialog, [role=slider]")) return;
    const { shown } = this;
    const at = shown?.ply ?? 0;
    const steps = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: this.live.plies };
    if (event.key in steps) {
      event.preventDefault();
      this.show(steps[event.key]);
      return;
    }
    const work = {
      a: () => this.analysis.setOn(!this.analysis.on),
      r: () => this.review.start(),
      ...this.controls.keys,
    }[event.key];
    if (!work) return;
    event.preventDefault();
    work();
  }
}
