// The buttons of a table: stepping, taking back, hints, seats, saving, links.

import { createTable, keepKeys, request, withQuery } from "./api.js";
import { marksOf } from "./analysis.js";
import { button, html } from "./dom.js";
import { announce, attempt, show } from "./messages.js";
import { fittingNetworks, seatOf, seatRows } from "./players.js";
import { go, positionHash } from "./route.js";
import { placedOf, setUpHash } from "./set_up.js";
import { percent, playerName, signed } from "./wording.js";

const ICONS = {
  first: "M18 5L9 12L18 19ZM5 5H8V19H5Z",
  back: "M16 5L7 12L16 19Z",
  next: "M8 5L17 12L8 19Z",
  last: "M6 5L15 12L6 19ZM16 5H19V19H16Z",
  flip: "M7 4L3 8.5H6V18H8V8.5H11ZM17 20L21 15.5H18V6H16V15.5H13Z",
};

function iconButton(name, label, key, onclick) {
  const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  icon.setAttribute("viewBox", "0 0 24 24");
  icon.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  icon.append(path);
  return html(
    "button",
    { type: "button", class: "icon", onclick, "aria-label": label, title: `${label} (${key})` },
    icon,
  );
}

const ignore = () => {};

export class TableControls {
  constructor(table) {
    this.table = table;
    const step = (to) => () => table.live && table.show(to());
    const at = () => table.shown?.ply ?? 0;
    this.first = iconButton(
      "first",
      "First position",
      "Home",
      step(() => 0),
    );
    this.back = iconButton(
      "back",
      "One ply back",
      "←",
      step(() => at() - 1),
    );
    this.next = iconButton(
      "next",
      "One ply on",
      "→",
      step(() => at() + 1),
    );
    this.last = iconButton(
      "last",
      "Last position",
      "End",
      step(() => table.live.plies),
    );
    this.flip = iconButton("flip", "Turn the board", "f", () => this.turn());
    this.steps = html(
      "div",
      { class: "steps", role: "group", "aria-label": "Steps" },
      this.first,
      this.back,
      this.next,
      this.last,
      this.flip,
    );
    this.undo = button("Take back", () => this.takeBack(), { title: "Take back (u)" });
    this.hint = button("Hint", () => this.askHint(), { title: "Hint (h)" });
    this.pause = button("Pause", () => this.setPaused(), { title: "Pause (p)" });
    this.again = button("New game", () => this.newGame(), { title: "New game (n)" });
    this.hand = button("", () => table.sitDown(table.live.turn.player), { class: "primary", hidden: true });
    this.play = html("div", { class: "play-buttons" }, this.hand, this.undo, this.hint, this.pause, this.again);
    this.seats = button("Change seats", () => this.openSeats());
    this.setUp = button("Set up", () => this.openSetUp(), { title: "Change the pieces on the board" });
    this.link = button("Copy link", () => this.copyLink());
    this.files = html("span", { class: "files" });
    this.help = button("Keys", () => this.openHelp(), { title: "Keys (?)" });
    this.dialog = html("dialog", {});
    this.more = html("div", { class: "more-buttons" }, this.seats, this.setUp, this.link, this.files, this.help, this.dialog);
    this.keys = {
      f: () => this.turn(),
      u: () => this.takeBack(),
      h: () => this.askHint(),
      n: () => this.newGame(),
      p: () => this.setPaused(),
      "?": () => this.openHelp(),
    };
  }

  draw() {
    const { live, shown, ply } = this.table;
    const over = live.turn.kind === "over";
    const engines = live.players.some(({ kind }) => kind === "engine");
    const people = live.players.some(({ kind }) => kind === "human");
    const setDisabled = (control, off) => {
      // A control that loses the focus by being switched off would leave keyboard users nowhere.
      if (off && document.activeElement === control) this.table.board.root.focus({ preventScroll: true });
      control.disabled = off;
    };
    setDisabled(this.first, shown.ply === 0);
    setDisabled(this.back, shown.ply === 0);
    setDisabled(this.next, ply === null);
    setDisabled(this.last, ply === null);
    // With hidden hands a table obeys those who sit at it.
    const isStranger = live.hidden_information && !over && people && this.table.seat === null;
    this.undo.hidden = !people || isStranger;
    setDisabled(this.undo, live.plies === 0);
    this.hint.hidden = !people;
    setDisabled(this.hint, this.table.mode() !== "play");
    this.pause.hidden = !engines || over || isStranger;
    this.pause.textContent = live.paused ? "Go on" : "Pause";
    this.hand.hidden = !this.table.handsOver();
    if (!this.hand.hidden) this.hand.textContent = `Show the hand of ${playerName(live, live.turn.player)}`;
    this.link.hidden = live.hidden_information;
    this.setUp.hidden = !this.canSetUp(live.game) || shown.turn.kind !== "player";
    this.seats.hidden = live.hidden_information && !over;
    this.drawFiles(live.hidden_information && !over);
  }

  /** Links that save the game, one per format. */
  async drawFiles(isHidden) {
    this.files.hidden = isHidden;
    if (isHidden || this.formats) return;
    this.formats = [];
    const path = `/api/tables/${encodeURIComponent(this.table.id)}`;
    this.formats = await request("GET", `${path}/formats`).catch(() => []);
    const name = (format) =>
      format === "vecaz" ? "Save" : `Save as ${format === "mat" ? ".mat" : format.toUpperCase()}`;
    this.files.replaceChildren(
      ...this.formats.map((format) =>
        html(
          "a",
          { class: "button", href: withQuery(`${path}/record`, { ...this.table.feed.viewer, format }), download: "" },
          name(format),
        ),
      ),
    );
  }

  turn() {
    this.table.flipped = !this.table.isFlipped;
    if (this.table.shown) this.table.draw();
  }

  takeBack() {
    if (!this.undo.hidden && !this.undo.disabled) attempt(() => this.table.feed.change("/undo"));
  }

  async setPaused() {
    if (this.pause.hidden) return;
    await attempt(() => this.table.feed.change("/pause", { paused: !this.table.live.paused }));
  }

  async askHint() {
    const { table } = this;
    if (this.hint.hidden || this.hint.disabled || this.asking) return;
    this.asking = true;
    const { plies } = table.live;
    const viewer = table.feed.viewer;
    const found = await attempt(() => request("POST", `/api/tables/${encodeURIComponent(table.id)}/hint`, viewer));
    this.asking = false;
    if (!found || plies !== table.live?.plies) return;
    const [best] = found.moves;
    const visits = found.moves.reduce((sum, move) => sum + move.visits, 0);
    table.hint = marksOf({ moves: [best] }, "none");
    table.drawOpinion();
    const sentence = `Hint: ${best.name}, ${percent(visits > 0 ? best.visits / visits : best.prior)} of the visits, value ${signed(best.value)}.`;
    table.status.textContent = sentence;
    announce(sentence);
  }

  async newGame() {
    const { game, options, players, placed } = this.table.live;
    const seats = players.map(seatOf);
    const state = await attempt(() => createTable({ game, options, seats, ...(placed ? { placed } : {}) }));
    if (state) go("table", state.id);
  }

  canSetUp(game) {
    const found = this.table.info?.games.find(({ name }) => name === game);
    return found !== undefined && found.no_set_up === null;
  }

  /** The screen on which the pieces of this position are changed. */
  openSetUp() {
    const { live, shown } = this.table;
    const placed = placedOf(shown.view, shown.turn.player);
    location.hash = setUpHash({ game: live.game, options: live.options, placed });
  }

  /** A link that makes this position anew, even when the server has been started again. */
  async copyLink() {
    const { live, shown } = this.table;
    const link = location.origin + location.pathname + positionHash(live, shown.ply);
    try {
      await navigator.clipboard.writeText(link);
      show("The link to this position is in the clipboard.", "note");
    } catch {
      this.openDialog(
        "Link to this position",
        html("input", {
          type: "text",
          readonly: true,
          value: link,
          "aria-label": "Link",
          onfocus: (event) => event.target.select(),
        }),
      );
    }
  }

  openDialog(title, ...content) {
    const close = button("Close", () => this.dialog.close());
    this.dialog.replaceChildren(html("h2", {}, title), ...content, html("div", { class: "dialog-bar" }, close));
    this.dialog.setAttribute("aria-label", title);
    this.dialog.showModal();
  }

  openSeats() {
    const { live, info } = this.table;
    if (!info) return;
    const seats = live.players.map(seatOf);
    const rows = seatRows({
      players: live.players.map(({ player, colour, aim }) => ({ name: playerName(live, player), colour, aim })),
      seats,
      networks: fittingNetworks(info, live.game, live.options),
      canPonder: !live.hidden_information,
      onchange: ignore,
    });
    const apply = async () => {
      this.dialog.close();
      const state = await attempt(() => this.table.feed.change("/seats", { seats }));
      if (state) keepKeys(state);
    };
    this.openDialog(
      "Seats",
      html("div", { class: "seat-rows" }, ...rows),
      button("Use these seats", apply, { class: "primary" }),
    );
  }

  openHelp() {
    const keys = [
      ["Tab", "goes to the board, then to its buttons"],
      ["Arrow keys on the board", "move over what can be chosen"],
      ["Enter or blank", "chooses; moves of pieces take two steps"],
      ["Escape", "takes back the first step"],
      ["Page up, page down", "the next or last choice on the board"],
      ["← →, Home, End", "step through the game, outside the board"],
      ["a", "analysis"],
      ["h", "hint"],
      ["u", "take back"],
      ["r", "review"],
      ["f", "turn the board"],
      ["p", "pause the networks"],
      ["n", "new game"],
    ];
    this.openDialog(
      "Keys",
      html("dl", { class: "keys" }, ...keys.flatMap(([key, text]) => [html("dt", {}, key), html("dd", {}, text)])),
    );
  }
}
