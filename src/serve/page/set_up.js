// Setting up a position: pieces are put on the board and taken off it, and the game says whether such a position can come about.

import { createTable, fullView, request, serverInfo } from "./api.js";
import { Board } from "./board.js";
import { button, html, setText } from "./dom.js";
import { attempt, show } from "./messages.js";
import { DEFAULT_STRENGTH, fittingNetwork } from "./players.js";
import { pieceIcon } from "./pieces.js";
import { go, hashOf, note } from "./route.js";
import { capital, gameName, optionsText } from "./wording.js";

/** A piece's index as a character of a position's text. */
const letterOf = (piece) => (piece === null ? "." : piece.toString(36));
const pieceOf = (letter) => (letter === "." ? null : Number.parseInt(letter, 36));

/** True for a character for each cell of the board, each of one of its pieces, and a player. A link may say anything. */
const fits = (placed, { cells, pieces }) =>
  typeof placed.cells === "string" &&
  placed.cells.length === cells.length &&
  [...placed.cells].every((letter) => letter === "." || pieceOf(letter) < pieces.length) &&
  [0, 1].includes(placed.player);

/** The address of this screen for a game, and for pieces that are there already. */
export const setUpHash = ({ game, options, placed }) =>
  hashOf("setup", "", { game, options: JSON.stringify(options), placed: placed ? JSON.stringify(placed) : null });

/** The pieces of a view as text, null for a board without cells. */
export function placedOf(view, player) {
  if (view.board.kind !== "grid") return null;
  return { cells: view.board.cells.map(letterOf).join(""), player };
}

export class SetUpScreen {
  constructor({ parameters }) {
    // No address continues this screen: every link to it is a position of its own.
    this.id = null;
    document.title = "Set up a position – vecaz";
    this.game = parameters.get("game");
    this.chosen = 0;
    this.board = new Board({ onAction: ({ action }) => this.put(action) });
    this.palette = html("div", { class: "palette", role: "radiogroup", "aria-label": "Piece to put on the board" });
    this.turn = html("div", { class: "palette", role: "radiogroup", "aria-label": "Player to move" });
    this.verdict = html("p", { class: "status", role: "status" });
    this.play = button("Play from here", () => this.start("engine"), { class: "primary" });
    this.analyse = button("Analyse it", () => this.start("people"));
    this.title = html("h1", { class: "table-title" }, "Set up a position");
    this.root = html(
      "div",
      { class: "screen table-screen set-up-screen" },
      html("div", { class: "table-main" }, this.board.root),
      html(
        "aside",
        { class: "table-side" },
        html(
          "section",
          { class: "card-box", "aria-label": "Position" },
          this.title,
          html("h2", {}, "Put on the board"),
          this.palette,
          html("h2", {}, "To move"),
          this.turn,
          this.verdict,
          html(
            "div",
            { class: "play-buttons" },
            this.play,
            this.analyse,
            button("Clear the board", () => this.set({ ...this.placed, cells: ".".repeat(this.placed.cells.length) })),
            button("Start of the game", () => this.set(this.first)),
          ),
        ),
      ),
    );
    this.allow(false);
    this.load(parameters);
  }

  close() {
    this.closed = true;
  }

  async load(parameters) {
    let placed = null;
    try {
      this.options = JSON.parse(parameters.get("options") ?? "{}");
      placed = JSON.parse(parameters.get("placed") ?? "null");
    } catch {
      show("The link to this position is damaged: its options or pieces cannot be read.");
      this.options ??= {};
    }
    this.info = await attempt(() => serverInfo());
    const found = await attempt(() =>
      request("POST", "/api/set_up", { game: this.game, options: this.options }),
    );
    if (this.closed) return;
    if (!found) {
      this.root.replaceChildren(
        html("p", { class: "empty" }, "No position can be set up here. ", html("a", { href: "#/play" }, "New game")),
      );
      return;
    }
    this.view = fullView(found.view);
    this.first = found.placed;
    // With those that the link does not name.
    this.allOptions = found.options;
    this.title.replaceChildren("Set up ", gameName(this.game), " ", html("small", {}, optionsText(this.options)));
    this.drawPalette();
    const isDamaged = placed && !fits(placed, this.view.board);
    if (isDamaged) show("The link to this position is damaged: its pieces are not those of this board.");
    await this.set(placed && !isDamaged ? placed : this.first);
  }

  /** A radio button with a picture or a word. */
  radio(group, value, checked, content, label) {
    const input = html("input", { type: "radio", name: group, class: "unseen", checked, "aria-label": label });
    input.addEventListener("change", () => {
      if (group === "piece") this.chosen = value;
      else this.set({ ...this.placed, player: value });
    });
    return html("label", { class: "choice-card", title: label }, input, content);
  }

  drawPalette() {
    const { pieces } = this.view.board;
    this.palette.replaceChildren(
      ...pieces.map((piece, index) =>
        this.radio("piece", index, index === this.chosen, pieceIcon(piece, this.view.colours), piece.name),
      ),
      this.radio("piece", null, false, html("b", {}, "Empty"), "an empty cell"),
    );
    this.turn.replaceChildren(
      ...[0, 1].map((player) => {
        const name = capital(this.view.colours[player] ?? `player ${player}`);
        return this.radio("turn", player, false, html("b", {}, name), `${name} is to move`);
      }),
    );
  }

  /** Puts the chosen piece on a cell, or takes it off where it is. */
  put(cell) {
    const letter = letterOf(this.chosen);
    const now = this.placed.cells[cell] === letter ? "." : letter;
    this.set({ ...this.placed, cells: this.placed.cells.slice(0, cell) + now + this.placed.cells.slice(cell + 1) });
  }

  /** Lets the position be played, or not. */
  allow(isPlayable) {
    for (const control of [this.play, this.analyse]) control.disabled = !isPlayable;
  }

  /** Shows a position, and what the game says of it. */
  async set(placed) {
    this.placed = placed;
    note("setup", "", { game: this.game, options: JSON.stringify(this.options), placed: JSON.stringify(placed) });
    this.draw();
    this.allow(false);
    const check = (this.checks = (this.checks ?? 0) + 1);
    const found = await attempt(() =>
      request("POST", "/api/set_up", { game: this.game, options: this.options, placed }),
    );
    if (!found || this.closed || check !== this.checks) return;
    this.refusal = found.refusal;
    setText(this.verdict, found.refusal ?? "This position can be played.");
    this.verdict.dataset.kind = found.refusal ? "refused" : "wait";
    this.allow(!found.refusal);
  }

  draw() {
    const cells = [...this.placed.cells].map(pieceOf);
    const actions = cells.map((_, cell) => ({ action: cell, name: String(cell), spot: { place: cell } }));
    const view = { ...this.view, board: { ...this.view.board, cells }, actions, last: [], line: [], marks: [], notes: [] };
    this.board.update(view, {
      playable: true,
      flipped: false,
      seat: null,
      playerName: (player) => capital(this.view.colours[player] ?? `player ${player}`),
      animate: false,
      label: `${gameName(this.game)}, a position that is set up`,
    });
    for (const [player, label] of [...this.turn.children].entries()) {
      label.firstElementChild.checked = player === this.placed.player;
    }
  }

  /** Makes a table of the position: the player to move is a person, and the others are, or networks. */
  async start(others) {
    const { network: usual } = this.info?.games.find(({ name }) => name === this.game) ?? {};
    const network = usual ? fittingNetwork(this.info, this.game, this.allOptions, usual) : "uniform";
    const engine = { kind: "engine", network, ...DEFAULT_STRENGTH };
    const seats = [0, 1].map((player) =>
      others === "people" || player === this.placed.player ? { kind: "human" } : engine,
    );
    const body = { game: this.game, options: this.options, placed: this.placed, seats };
    const state = await attempt(() => createTable(body));
    if (state) go("table", state.id, { analysis: others === "people" ? "1" : null });
  }
}
