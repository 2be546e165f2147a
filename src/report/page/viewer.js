// Sample games of a report, stepped through on a board with buttons and keys.

import { Board } from "./board.js";
import { button, html, setText } from "./dom.js";
import { playerName, resultText } from "./wording.js";

/** Milliseconds per ply of a game that plays. */
const TEMPO = 700;

/** The value that a change makes of `old`: a new value, or changed entries of an object or a list. See src/report/changes.rs. */
function changed(old, change) {
  const [kind, entries, removed = []] = change;
  if (kind === "=") return entries;
  const made = kind === "list" ? [...old] : { ...old };
  for (const [key, entry] of Object.entries(entries)) {
    made[key] = entry[0] === "=" ? entry[1] : changed(made[key], entry);
  }
  for (const key of removed) delete made[key];
  return made;
}

/** All positions of a game. */
function viewsOf({ first, changes }) {
  const views = [first];
  for (const change of changes) views.push(changed(views[views.length - 1], change));
  return views.map((view) => ({ marks: [], line: [], dice: [], notes: [], last: [], ...view, actions: [] }));
}

class Viewer {
  constructor(root, games) {
    this.games = games;
    this.board = new Board({ onAction: () => {} });
    this.choice = html(
      "select",
      { "aria-label": "Game", onchange: () => this.open(Number(this.choice.value)) },
      ...games.map(({ title }, index) => html("option", { value: index }, title)),
    );
    this.status = html("p", { class: "status", role: "status" });
    this.moves = html("ol", { class: "moves" });
    this.slider = html("input", {
      type: "range",
      min: 0,
      "aria-label": "Ply",
      oninput: () => this.show(Number(this.slider.value)),
    });
    const step = (text, name, target) => button(text, () => this.show(target()), { "aria-label": name, title: name });
    this.playing = button("Play", () => this.setPlaying(!this.timer));
    root.append(
      html("div", { class: "viewer-board" }, this.board.root),
      html(
        "div",
        { class: "viewer-side" },
        this.choice,
        this.status,
        html(
          "div",
          { class: "viewer-buttons" },
          step("|<", "Start", () => 0),
          step("<", "Back", () => this.ply - 1),
          this.playing,
          step(">", "Forward", () => this.ply + 1),
          step(">|", "End", () => this.last),
        ),
        this.slider,
        this.moves,
      ),
    );
    root.addEventListener("keydown", (event) => this.typed(event));
    this.open(0);
  }

  get last() {
    return this.views.length - 1;
  }

  open(index) {
    this.setPlaying(false);
    this.game = this.games[index];
    this.views = viewsOf(this.game);
    this.slider.max = this.last;
    this.moves.replaceChildren(
      ...this.game.moves.map((move, ply) =>
        html("li", {}, button(move, () => this.show(ply + 1), { class: "move", "aria-label": `Ply ${ply + 1}: ${move}` })),
      ),
    );
    this.ply = null;
    this.show(0);
  }

  show(target) {
    const ply = Math.max(0, Math.min(this.last, target));
    const animate = this.ply !== null && ply === this.ply + 1;
    this.ply = ply;
    const state = { ...this.game, players: this.views[0].colours.map((colour) => ({ colour })) };
    this.board.update(this.views[ply], {
      playable: false,
      flipped: false,
      seat: null,
      playerName: (player) => playerName(state, player),
      animate,
      label: `Sample game, ply ${ply}`,
    });
    this.slider.value = String(ply);
    for (const [index, item] of [...this.moves.children].entries()) {
      item.firstElementChild.setAttribute("aria-current", String(index + 1 === ply));
    }
    const current = this.moves.children[ply - 1];
    if (current) this.moves.scrollTop = current.offsetTop - this.moves.offsetTop - this.moves.clientHeight / 2;
    const notes = this.views[ply].notes.join("; ");
    const place = ply === this.last ? resultText(state) : `Ply ${ply} of ${this.last}`;
    setText(this.status, notes ? `${place} ${notes}` : place);
    if (ply === this.last) this.setPlaying(false);
  }

  setPlaying(wanted) {
    clearInterval(this.timer);
    this.timer = null;
    if (wanted) {
      if (this.ply === this.last) this.show(0);
      this.timer = setInterval(() => this.show(this.ply + 1), TEMPO);
    }
    setText(this.playing, wanted ? "Pause" : "Play");
  }

  typed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || ["SELECT", "INPUT"].includes(event.target.tagName)) return;
    const targets = { ArrowLeft: this.ply - 1, ArrowRight: this.ply + 1, Home: 0, End: this.last };
    if (!(event.key in targets)) return;
    event.preventDefault();
    this.show(targets[event.key]);
  }
}

for (const root of document.querySelectorAll(".games")) {
  new Viewer(root, JSON.parse(root.querySelector("script").textContent));
}
