// The first screen: which game, against whom.

import { createTable, request, serverInfo } from "./api.js";
import { button, html } from "./dom.js";
import { attempt } from "./messages.js";
import {
  DEFAULT_STRENGTH,
  fittingNetwork,
  fittingNetworks,
  networkFacts,
  networkLabel,
  seatRows,
  spanOptions,
} from "./players.js";
import { openFile, openText } from "./records.js";
import { go, hashOf } from "./route.js";
import { setUpHash } from "./set_up.js";
import { readSetting, writeSetting } from "./settings.js";
import { capital, counted, gameName } from "./wording.js";

/** Words of values that are a list of names: "freestyle, exact or caro". */
const CHOICES = /^[\w-]+(?:, [\w-]+)* or [\w-]+$/;

/** Maximum number of players of a game, as on the server. */
const MAX_PLAYERS = 8;

/** A value as TOML has it, for a form: without quotes. */
const unquoted = (toml) => (/^".*"$/s.test(toml) ? JSON.parse(toml) : toml);

export class PlayScreen {
  constructor() {
    this.id = "";
    this.form = html("form", { class: "start", "aria-label": "New game" });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.start();
    });
    this.root = html("div", { class: "screen start-screen" }, html("h1", {}, "Play"), this.form);
    document.title = "Play – vecaz";
    this.load();
  }

  close() {
    this.closed = true;
  }

  async load() {
    this.info = await attempt(() => serverInfo({ fresh: true }));
    if (!this.info || this.closed) return;
    const tables = (await attempt(() => request("GET", "/api/tables"))) ?? [];
    const games = this.info.games.map(({ name }) => name);
    const last = readSetting("game");
    const first = this.info.networks.find(({ id }) => id === this.info.default_network);
    const game = games.includes(last) ? last : (first?.game ?? this.info.default_game);
    this.makeFrame(tables);
    this.chooseGame(games.includes(game) ? game : games[0]);
  }

  makeFrame(tables) {
    this.games = html("div", { class: "game-list", role: "radiogroup", "aria-label": "Game" });
    this.networks = html("div", { class: "network-list", role: "radiogroup", "aria-label": "Opponent" });
    this.optionFields = html("div", { class: "option-fields" });
    this.seatsField = html("div", { class: "seat-rows" });
    this.presets = html("div", { class: "presets", role: "group", "aria-label": "Who plays" });
    this.actionsField = html("input", {
      type: "text",
      id: "first-moves",
      placeholder: "none",
      autocomplete: "off",
      spellcheck: "false",
    });
    const file = html("input", {
      type: "file",
      id: "record-file",
      class: "unseen",
      onchange: () => file.files[0] && openFile(file.files[0]),
    });
    this.setUp = html("div", { class: "set-up-link" });
    const section = (title, ...children) => html("section", { class: "card-box" }, html("h2", {}, title), ...children);
    this.rules = html(
      "details",
      { class: "rules" },
      html("summary", {}, "Rules and first moves"),
      this.optionFields,
      html(
        "div",
        { class: "field" },
        html("label", { for: "first-moves" }, "Moves already played"),
        this.actionsField,
        html("small", {}, "Names or numbers from the start of the game, with blanks between them"),
      ),
      this.setUp,
    );
    this.form.replaceChildren(
      section("Game", this.games),
      section("Opponent", this.networks),
      section("Seats", this.presets, this.seatsField, this.rules),
      html(
        "div",
        { class: "start-bar" },
        html("button", { type: "submit", class: "primary" }, "Start the game"),
        html("label", { class: "button", for: "record-file" }, "Open a saved game"),
        file,
      ),
      this.pasteBox(),
      ...this.openTables(tables, section),
    );
  }

  /** A field for a game or a position as text. */
  pasteBox() {
    const text = html("textarea", { id: "record-text", rows: 4, spellcheck: "false" });
    return html(
      "details",
      { class: "card-box paste" },
      html("summary", {}, "Paste a game or a position"),
      html("label", { for: "record-text" }, "SGF, PGN, FEN, a backgammon match, or JSON of vecaz"),
      text,
      html(
        "div",
        {},
        button("Open it", () => openText(text.value)),
      ),
    );
  }

  openTables(tables, section) {
    if (tables.length === 0) return [];
    const rows = tables
      .slice(-12)
      .reverse()
      .map(({ id, title, plies, over }) =>
        html(
          "li",
          {},
          html("a", { href: hashOf("table", id) }, title),
          ` ${counted(plies, "ply").replace("plys", "plies")}${over ? ", over" : ""}`,
        ),
      );
    return [section("Open tables", html("ul", { class: "table-list" }, ...rows))];
  }

  get game() {
    return this.info.games.find(({ name }) => name === this.gameName);
  }

  chooseGame(name) {
    this.gameName = name;
    // A network of other settings than the game's own is a better offer than none.
    const mine = this.info.networks.filter((network) => network.game === name);
    this.networkId = (mine.find(({ id }) => id === this.game.network) ?? mine[0])?.id ?? this.game.network;
    const count = (game) => this.info.networks.filter((network) => network.game === game).length;
    this.games.replaceChildren(
      ...this.info.games.map((game) =>
        this.radio({
          checked: game.name === name,
          choose: () => this.keepingFocus(() => this.chooseGame(game.name)),
          group: "game",
          content: [
            html("b", {}, gameName(game.name)),
            html("small", {}, count(game.name) > 0 ? counted(count(game.name), "network") : "no network yet"),
          ],
        }),
      ),
    );
    this.options = Object.fromEntries(this.game.options.map((option) => [option.name, unquoted(option.value)]));
    this.chooseNetwork(this.networkId);
  }

  /** A radio button in the form of a card. */
  radio({ checked, choose, group, content }) {
    const input = html("input", { type: "radio", name: group, class: "unseen", checked, onchange: choose });
    return html("label", { class: "choice-card" }, input, ...content);
  }

  /** Does what draws radio buttons anew, and gives the focus back to the chosen one. */
  keepingFocus(work) {
    const { name } = document.activeElement ?? {};
    work();
    if (name === "game" || name === "network") this.form.querySelector(`input[name=${name}]:checked`)?.focus();
  }

  chooseNetwork(id) {
    this.networkId = id;
    const network = this.info.networks.find((one) => one.id === id);
    if (network.options)
      for (const [name, value] of Object.entries(network.options)) this.options[name] = String(value);
    const offered = this.info.networks.filter(({ game }) => game === null || game === this.gameName);
    this.networks.replaceChildren(
      ...offered.map((one) =>
        this.radio({
          checked: one.id === id,
          choose: () => this.keepingFocus(() => this.chooseNetwork(one.id)),
          group: "network",
          content: [
            html("b", {}, networkLabel(one)),
            html("small", {}, one.game === null ? "plays every game, by search alone" : networkFacts(one)),
          ],
        }),
      ),
    );
    this.drawOptions(network);
    this.drawSetUp();
    this.preset(this.presetName ?? "first");
  }

  /** The way to a position that is set up, or why there is none. */
  drawSetUp() {
    const { no_set_up: refusal } = this.game;
    const open = () => (location.hash = setUpHash({ game: this.gameName, options: this.typedOptions() }));
    this.setUp.replaceChildren(
      refusal ? html("small", {}, `${capital(refusal)}.`) : button("Set up a position", open),
    );
  }

  drawOptions(network) {
    const span = spanOptions(this.info, this.gameName);
    const fixed = Object.keys(network.options ?? {}).filter((name) => !span.includes(name));
    this.optionFields.replaceChildren(
      ...this.game.options.filter(({ sight }) => !sight).map((option) => {
        const id = `option-${option.name}`;
        const value = this.options[option.name] ?? "";
        const onchange = (event) => {
          this.options[option.name] = event.target.value;
          if (this.numPlayers() === this.seats.length) this.drawSeats();
          else this.preset(this.presetName);
        };
        const disabled = fixed.includes(option.name);
        const names = CHOICES.test(option.values) ? option.values.split(/, | or /) : null;
        const input = names
          ? html(
              "select",
              { id, onchange, disabled },
              ...names.map((name) => html("option", { selected: name === value }, name)),
            )
          : html("input", { id, type: "text", value, onchange, disabled, autocomplete: "off", spellcheck: "false" });
        return html(
          "div",
          { class: "field" },
          html("label", { for: id }, capital(option.name.replaceAll("_", " "))),
          input,
          html(
            "small",
            {},
            disabled
              ? `${option.meaning} The network was trained with this value.`
              : `${option.meaning} ${capital(option.values)}.`,
          ),
        );
      }),
    );
  }

  /** The number of players: an option of that name, or that of the rules where it is none. */
  numPlayers() {
    const typed = Number(this.options.players);
    return Number.isInteger(typed) && typed >= 1 && typed <= MAX_PLAYERS ? typed : this.game.players;
  }

  preset(name) {
    this.presetName = name;
    const { ponder, ...strength } = this.strength ?? DEFAULT_STRENGTH;
    const engine = { kind: "engine", network: this.networkId, ...strength };
    if (ponder && !this.game.hidden_information) engine.ponder = true;
    const count = this.numPlayers();
    const isPerson = {
      first: (seat) => seat === 0,
      last: (seat) => seat === count - 1,
      people: () => true,
      networks: () => false,
    }[name];
    this.seats = Array.from({ length: count }, (_, seat) => (isPerson(seat) ? { kind: "human" } : { ...engine }));
    const names =
      count === 1
        ? [
            ["first", "You play"],
            ["networks", "The network plays"],
          ]
        : [
            ["first", "You begin"],
            ["last", count === 2 ? "You are second" : "You are last"],
            ["people", count === 2 ? "Two people" : "People only"],
            ["networks", "Networks only"],
          ];
    const had = this.presets.contains(document.activeElement);
    this.presets.replaceChildren(
      ...names.map(([key, text]) =>
        button(text, () => this.preset(key), { "aria-pressed": String(key === name), class: "segment" }),
      ),
    );
    if (had) this.presets.querySelector("[aria-pressed=true]")?.focus();
    this.drawSeats();
  }

  drawSeats() {
    const count = this.numPlayers();
    while (this.seats.length < count) this.seats.push({ kind: "engine", network: this.networkId, ...DEFAULT_STRENGTH });
    this.seats.length = count;
    const { colours = [], aims = [] } = this.game;
    const players = this.seats.map((_, seat) => ({
      name: count === 2 && colours[seat] ? capital(colours[seat]) : `Player ${seat}`,
      colour: colours[seat],
      aim: aims[seat],
    }));
    const options = this.typedOptions();
    for (const seat of this.seats.filter(({ kind }) => kind === "engine")) {
      seat.network = fittingNetwork(this.info, this.gameName, options, seat.network);
    }
    const networks = fittingNetworks(this.info, this.gameName, options);
    this.seatsField.replaceChildren(
      ...seatRows({
        players,
        seats: this.seats,
        networks,
        canPonder: !this.game.hidden_information,
        onchange: () => {
          const engine = this.seats.find(({ kind }) => kind === "engine");
          if (engine) {
            const { simulations, seconds, ponder } = engine;
            this.strength = { simulations, seconds, ...(ponder ? { ponder } : {}) };
          }
        },
      }),
    );
  }

  /** The options in their types: texts where the default is quoted, else numbers, true or false. */
  typedOptions() {
    const typed = ({ name, value: first }) => {
      const text = this.options[name];
      if (first.startsWith('"')) return text;
      const number = Number(text);
      if (text.trim() !== "" && !Number.isNaN(number)) return number;
      return text === "true" ? true : text === "false" ? false : text;
    };
    return Object.fromEntries(
      this.game.options
        .filter(({ name, value }) => value !== "none" || this.options[name] !== "none")
        .map((option) => [option.name, typed(option)]),
    );
  }

  async start() {
    if (!this.info || this.starting) return;
    this.starting = true;
    writeSetting("game", this.gameName);
    const body = { game: this.gameName, options: this.typedOptions(), seats: this.seats };
    const actions = this.actionsField.value.trim();
    if (actions) body.actions = actions;
    const state = await attempt(() => createTable(body));
    this.starting = false;
    if (state) go("table", state.id);
    else if (this.rules.querySelector("input, select")) this.rules.open = true;
  }
}
