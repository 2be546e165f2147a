// Single things that the page once got wrong: results, links, networks that do not fit, hidden pages, what is replayed.

import assert from "node:assert/strict";
import { ADDRESS, ask, look, openTable } from "./page.mjs";

const people = [{ kind: "human" }, { kind: "human" }];
/** The identifier of the table that is shown. */
const tableOf = (page) => page.url().match(/table\/(\w+)/)[1];
const winnersOf = (page) => page.locator(".players .winner").count();

/** Players who lose together have no draw, and of several who lead in points one wins. */
export async function checkResults(page) {
  const ramsey = await ask("POST", "/api/tables", {
    game: "clique",
    options: { n: 5, k: 3, mode: "ramsey" },
    seats: people,
    actions: "0-1 2-3 0-2 1-3 1-2",
  });
  await openTable(page, ramsey.id);
  await page.waitForSelector('.status[data-kind="over"] >> text=All players lose');
  assert.equal(await winnersOf(page), 0);
  await ask("DELETE", `/api/tables/${ramsey.id}`);

  const engine = { kind: "engine", network: "uniform", simulations: 1 };
  const options = { players: 3, cards: 2 };
  const { id } = await ask("POST", "/api/tables", { game: "blob", options, seats: [engine, engine, engine], seed: 3 });
  let state = await ask("GET", `/api/tables/${id}`);
  while (state.turn.kind !== "over") state = await ask("GET", `/api/tables/${id}`);
  const record = await (await fetch(`${ADDRESS}/api/tables/${id}/record`)).text();
  await page.goto(`${ADDRESS}/#/play`);
  await page.getByText("Paste a game or a position").click();
  await page.locator("#record-text").fill(record);
  await page.getByRole("button", { name: "Open it" }).click();
  await page.waitForSelector('.status[data-kind="over"]');
  assert.equal(await winnersOf(page), state.winners.length);
  const opened = tableOf(page);
  const kept = await page.evaluate(() => localStorage.getItem("vecaz.keys") ?? "");
  assert.ok(!kept.includes(opened), "a game that is over needs no keys");
  for (const table of [id, opened]) await ask("DELETE", `/api/tables/${table}`);
}

/** A damaged link makes no table, and its message stays. */
export async function checkLinks(page) {
  const before = (await ask("GET", "/api/tables")).length;
  await page.goto(`${ADDRESS}/#/position?game=hex&options=%7Bsize`);
  await page.waitForSelector(".game-list input");
  await page.waitForSelector("#toast:not([hidden]) >> text=is damaged");
  assert.equal((await ask("GET", "/api/tables")).length, before);
  await page.goto(`${ADDRESS}/#/position?game=hex&actions=nowhere`);
  await page.waitForSelector("#toast:not([hidden]) >> text=nowhere");
  await page.goto(`${ADDRESS}/#/table/%`);
  await page.waitForSelector(".empty >> text=Start a new game");
  // A screen that there is not, though objects of JavaScript have something of the name.
  await page.goto(`${ADDRESS}/#/constructor`);
  await page.waitForSelector(".game-list input");
}

/** A seat whose network does not fit the options any more gets one that does. */
export async function checkNetworks(page) {
  const played = async () => {
    await page.waitForURL(/#\/table\//);
    const { players } = await ask("GET", `/api/tables/${tableOf(page)}`);
    await ask("DELETE", `/api/tables/${tableOf(page)}`);
    return players[1].network;
  };
  await page.goto(`${ADDRESS}/#/play`);
  await page.locator(".game-list label", { hasText: "Connect four" }).click();
  await page.locator(".network-list label", { hasText: "Search without a network" }).click();
  await page.getByText("Rules and first moves").click();
  await page.locator("select.who").nth(1).selectOption("embedded");
  await page.locator("#option-rows").fill("5");
  await page.locator("#option-rows").blur();
  assert.equal(await page.locator("select.who").nth(1).inputValue(), "uniform");
  await page.getByRole("button", { name: "Start the game" }).click();
  assert.equal(await played(), "uniform");
  for (const [options, network] of [
    ['{"rows":5}', "uniform"],
    ["{}", "embedded"],
  ]) {
    await page.goto(`${ADDRESS}/#/setup?game=connect_four&options=${encodeURIComponent(options)}`);
    await page.waitForSelector('.status >> text="This position can be played."');
    await page.getByRole("button", { name: "Play from here" }).click();
    assert.equal(await played(), network);
  }
}

/** What is typed as a number of players and is none leaves that of the rules. */
export async function checkPlayers(page) {
  const { players } = (await ask("GET", "/api/info")).games.find(({ name }) => name === "blob");
  await page.goto(`${ADDRESS}/#/play`);
  await page.locator(".game-list label", { hasText: "Blob" }).click();
  await page.getByText("Rules and first moves").click();
  for (const [typed, seats] of [
    ["3", 3],
    ["-1", players],
    ["3", 3],
    ["2.5", players],
  ]) {
    await page.locator("#option-players").fill(typed);
    await page.locator("#option-players").blur();
    assert.equal(await page.locator("select.who").count(), seats, typed);
  }
}

/** Of three points half are in the middle between a draw and the maximum, and what a move lost is no share of a win. */
export async function checkPoints(page) {
  await page.goto(`${ADDRESS}/#/play`);
  const shown = await page.evaluate(async () => {
    const [{ ValueGraph }, { MoveList }, { ValueBar }] = await Promise.all(
      ["/chart.js", "/moves.js", "/player_list.js"].map((file) => import(file)),
    );
    const [graph, moves, bar] = [new ValueGraph({}), new MoveList({}), new ValueBar()];
    const losses = new Map([[0, 1.5]]);
    const values = new Map([1.5, 1.5].map((value, ply) => [ply, value]));
    graph.draw({ plies: 1, ply: 0, values, losses, text: "", points: 3 });
    const history = [{ name: "24/18", kind: "player", player: 0 }];
    moves.draw({ history, ply: 0, players: 2, losses, colours: [], points: 3 });
    bar.draw([1.5, -1.5], [], false, 3);
    return {
      curve: graph.drawing.querySelector(".curve").getAttribute("d"),
      title: moves.root.querySelector(".ply").title,
      bar: [bar.root.title, bar.lower.style.flexGrow],
    };
  });
  assert.deepEqual(shown, {
    curve: "M0.0 24.5L400.0 24.5",
    title: "loses 1.5 points",
    bar: ["First +1.50 points", "0.75"],
  });
}

/** What boards of any game may have: equal cards in a hand, other kinds of pieces in every position, fewer players than seats; and large values. */
export async function checkBoards(page) {
  await page.goto(`${ADDRESS}/#/play`);
  const shown = await page.evaluate(async () => {
    const [{ Board }, { TableScreen }, { marksOf }, { lineChart }] = await Promise.all(
      ["/board.js", "/table.js", "/analysis.js", "/chart.js"].map((file) => import(file)),
    );
    const board = new Board({ onAction: () => {} });
    const draw = (shape) => {
      const lists = { marks: [], line: [], dice: [], notes: [], last: [], actions: [] };
      const options = { playable: false, flipped: false, seat: 0, playerName: String };
      board.update({ board: shape, colours: ["blue", "red"], ...lists }, options);
      return board.root;
    };
    const nine = { number: 9, name: "9♠" };
    const seat = { values: [], hand: [nine, nine], hidden: 0 };
    const cards = { kind: "cards", caption: "", columns: [], seats: [seat], trick: [] };
    const hands = [1, 2, 3].map(() => draw(cards).querySelectorAll(".own-hand .card").length);
    const pieces = (name) => [{ owner: null, mark: "?", shape: "name", name }];
    const grid = { kind: "grid", style: "squares", columns: ["a"], rows: ["1"], cells: [0] };
    const tiles = ["2", "4"].map((name) => draw({ ...grid, pieces: pieces(name) }).querySelector(".letter").textContent);
    const history = [0, 1, 2, 0, 1, 2].map((player) => ({ kind: "player", player, name: "9♠", spot: { card: 9 } }));
    const table = {
      live: { players: [{}, {}, {}, {}, {}], history },
      shown: { ply: 6, view: { board: { ...cards, seats: [seat, seat, seat] } } },
    };
    const trick = TableScreen.prototype.lastTrick.call(table).map(({ player }) => player);
    const move = (value) => ({ action: 0, spot: "button", visits: 1, prior: 1, value });
    const values = [0.25, -0.25, 10.25].map((value) => marksOf({ moves: [move(value)] }, "value")[0].text);
    const points = Array.from({ length: 200_000 }, (_, epoch) => [epoch, 1]);
    const chart = lineChart({ title: "", series: [{ name: "", points, index: 0 }], xName: "" });
    return { hands, tiles, trick, values, series: chart.querySelectorAll(".series").length };
  });
  assert.deepEqual(shown, {
    hands: [2, 2, 2],
    tiles: ["2", "4"],
    trick: [0, 1, 2],
    values: ["+.25", "−.25", "+10.25"],
    series: 1,
  });
}

/** A page that is not seen listens to no table, and an engine that failed thinks no more. */
export async function checkStreams(page) {
  const { id } = await ask("POST", "/api/tables", { game: "tic_tac_toe", seats: people });
  await openTable(page, id);
  const setHidden = (hidden) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await setHidden(true);
  await ask("POST", `/api/tables/${id}/play`, { action: 4 });
  await page.waitForTimeout(500);
  assert.equal((await look(page)).plies, 0);
  await setHidden(false);
  await page.waitForSelector('.value-graph[aria-valuemax="1"]');

  // Meanwhile the game may have gone back and on to another line of as many plies.
  const firstPly = async () => {
    await page.waitForSelector('.value-graph[aria-valuemax="2"]');
    await page.keyboard.press("Home");
    await page.waitForSelector(".status >> text=Ply 0 of 2");
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector(".status >> text=Ply 1 of 2");
    return page.locator(".board-frame").innerHTML();
  };
  await ask("POST", `/api/tables/${id}/play`, { action: 0 });
  const before = await firstPly();
  await setHidden(true);
  for (let undone = 0; undone < 2; undone++) await ask("POST", `/api/tables/${id}/undo`, {});
  for (const action of [8, 0]) await ask("POST", `/api/tables/${id}/play`, { action });
  await setHidden(false);
  await page.waitForSelector(".status:not([data-kind='past'])");
  assert.notEqual(await firstPly(), before);

  const state = await ask("GET", `/api/tables/${id}`);
  const engine = { kind: "engine", network: "uniform", label: "search" };
  const players = state.players.map((player) => ({ ...player, ...engine }));
  const failed = { ...state, version: 1000, error: "no memory", players };
  const body = `event: state\ndata: ${JSON.stringify(failed)}\n\n`;
  await page.route("**/events*", (route) => route.fulfill({ contentType: "text/event-stream", body }));
  await page.goto(`${ADDRESS}/#/play`);
  await openTable(page, id);
  await page.waitForSelector(".status >> text=cannot move: no memory");
  await page.unroute("**/events*");
  await page.goto(`${ADDRESS}/#/play`);
  await ask("DELETE", `/api/tables/${id}`);
}

/** While a network's ply is looked at, a state that comes again or brings no ply takes no choice from the person to move. */
export async function checkPace(page) {
  const seats = [people[0], { kind: "engine", network: "uniform", simulations: 4 }];
  const { id } = await ask("POST", "/api/tables", { game: "backgammon", seats, seed: 1 });
  await openTable(page, id);
  const shown = await page.evaluate(async (table) => {
    const { TableFeed } = await import("/feed.js");
    const state = await (await fetch(`/api/tables/${table}`)).json();
    const states = [];
    const feed = new TableFeed({ id: table, seat: null, key: null, onState: (seen) => states.push(seen.version) });
    feed.stop();
    const engines = state.players.findIndex(({ kind }) => kind === "engine");
    const history = [{ kind: "player", player: engines, action: 0, name: "" }];
    const offer = (version) => {
      feed.offer({ ...state, plies: 1, history, version });
      return feed.upToDate;
    };
    const upToDate = [7, 7, 8, 6].map(offer);
    feed.close();
    return { states, upToDate };
  }, id);
  assert.deepEqual(shown, { states: [7, 8], upToDate: [true, true, true, true] });
  await page.goto(`${ADDRESS}/#/play`);
  await ask("DELETE", `/api/tables/${id}`);
}

/** The replay goes on to the games of a new epoch, here the third, if it showed the newest. */
export async function checkReplay(page) {
  /** Leaves epochs after the second out of the first reply to `path`. */
  const holdBack = async (path, without) => {
    let isFirst = true;
    await page.route(path, async (route) => {
      const all = await (await route.fetch()).json();
      await route.fulfill({ json: isFirst ? without(all) : all });
      isFirst = false;
    });
  };
  const isEarly = ({ epoch }) => epoch < 3;
  await page.goto(`${ADDRESS}/#/play`);
  await holdBack("**/api/runs/r0/metrics*", ({ rows }) => ({ rows: rows.filter(isEarly) }));
  await holdBack("**/api/runs/r0/games", (epochs) => epochs.filter(isEarly));
  await page.goto(`${ADDRESS}/#/watch?runs=r0`);
  const shown = page.getByLabel("Epoch of the games");
  await page.waitForFunction((select) => select.value === "2", await shown.elementHandle());
  await page.waitForFunction((select) => select.value === "3", await shown.elementHandle(), { timeout: 40000 });
  await page.unroute("**/api/runs/r0/metrics*");
  await page.unroute("**/api/runs/r0/games");
}
