// The page of `vecaz serve`, driven in Chromium: every kind of game to its end by clicks and by keys, hidden hands, analysis, review, links.

import assert from "node:assert/strict";
import {
  ADDRESS,
  ask,
  checkAccess,
  clickOne,
  generator,
  look,
  openBrowser,
  openPage,
  openTable,
  playToEnd,
  removeTable,
  typeOne,
  waitForTurn,
} from "./page.mjs";
import {
  checkBoards,
  checkLinks,
  checkNetworks,
  checkPace,
  checkPlayers,
  checkPoints,
  checkReplay,
  checkResults,
  checkStreams,
} from "./details.mjs";
import { checkHiddenHands } from "./hidden_hands.mjs";
import { checkSetUp } from "./set_up.mjs";

/** Games in settings that end soon; those that the program does not have are left out. */
const ALL_GAMES = [
  { game: "tic_tac_toe", options: {} },
  { game: "connect_four", options: {} },
  { game: "gomoku", options: { size: 7 } },
  { game: "hex", options: { size: 4 } },
  { game: "othello", options: { size: 6 } },
  { game: "go", options: { size: 5 }, passAfter: 16 },
  { game: "chess", options: { max_plies: 24 } },
  { game: "chess", options: { fen: "8/P6k/8/8/8/8/7p/K7 w - - 0 1", max_plies: 12 } },
  { game: "clique", options: { n: 6 } },
  { game: "backgammon", options: { short_game: true } },
  { game: "blob", options: { players: 3, cards: 3 } },
  { game: "breakthrough", options: { rows: 5, columns: 4 } },
  { game: "dots_and_boxes", options: { rows: 2, columns: 3 } },
  { game: "quoridor", options: { size: 4, walls: 2 } },
  { game: "ultimate_tic_tac_toe", options: {} },
  { game: "2048", options: { max_tile: 32 }, players: 1 },
];
const known = new Set((await ask("GET", "/api/info")).games.map(({ name }) => name));
const GAMES = ALL_GAMES.filter(({ game }) => known.has(game));
const problems = [];
const context = await openBrowser();
const page = await openPage(context, problems);

async function step(name, work) {
  const start = performance.now();
  try {
    await work();
    assert.deepEqual(problems, []);
  } catch (error) {
    console.error(`${name}, at ${page.url()}: ${error.stack}`, problems);
    if (process.env.SCREENSHOT) await page.screenshot({ path: process.env.SCREENSHOT });
    await context.close();
    process.exit(1);
  }
  console.log(`${name}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
}

const people = (count) => Array.from({ length: count }, () => ({ kind: "human" }));

/** A table for people; a game with hidden hands is played by one person against quick networks. */
async function tableOf({ game, options, players = 2 }, seed) {
  const hidden = game === "blob";
  const engine = { kind: "engine", network: "uniform", simulations: 4 };
  const seats = hidden ? [{ kind: "human" }, ...Array.from({ length: options.players - 1 }, () => engine)] : people(players);
  return ask("POST", "/api/tables", { game, options, seats, seed });
}

/** Gives the keys of hidden hands to the page, as if it had made the table. */
async function giveKeys({ id, keys, hidden_information: isHidden }) {
  if (!isHidden) return;
  await page.evaluate((entry) => localStorage.setItem("vecaz.keys", JSON.stringify([entry])), { id, keys });
}

async function playAll(chooseOne, seed) {
  for (const [index, setting] of GAMES.entries()) {
    const table = await tableOf(setting, seed + index);
    await giveKeys(table);
    await openTable(page, table.id);
    await playToEnd(page, chooseOne, generator(seed * 31 + index), setting);
    const { returns, plies } = await ask("GET", `/api/tables/${table.id}`);
    assert.ok(returns && plies > 0, `${setting.game} has an end`);
    await checkAccess(page, setting.game);
    await removeTable(table);
  }
}

await step("the first screen starts a game by keys alone", async () => {
  await page.goto(ADDRESS);
  await page.waitForSelector(".game-list input");
  await checkAccess(page, "first screen");
  for (let tab = 0; tab < 40; tab++) {
    if ((await page.evaluate(() => document.activeElement.name)) === "game") break;
    await page.keyboard.press("Tab");
  }
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".board-frame > .board");
  assert.match(page.url(), /#\/table\/\w+/);
  await page.goBack();
  await page.waitForSelector(".game-list input");
});

await step("every game ends by clicks alone", () => playAll(clickOne, 1));
await step("every game ends by keys alone", () => playAll(typeOne, 2));
await step("a hidden hand is in nothing that the browser gets", () => checkHiddenHands(context, problems));

await step("a first step is taken back by Escape, and a piece is dragged", async () => {
  const table = await ask("POST", "/api/tables", { game: "chess", seats: people(2) });
  await openTable(page, table.id);
  await page.locator('.target[data-key="p52"]').click();
  assert.deepEqual((await look(page)).open.sort(), ["p36", "p44"]);
  await page.locator('.target[data-key="p52"]').focus();
  await page.keyboard.press("Escape");
  assert.equal((await look(page)).started, false);
  const middle = async (key) => {
    const box = await page.locator(`.target[data-key="${key}"]`).boundingBox();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  await page.mouse.move(...(await middle("p52")));
  await page.mouse.down();
  await page.mouse.move(...(await middle("p36")), { steps: 5 });
  await page.mouse.up();
  await page.waitForSelector(".ply >> text=e2e4");
  await ask("DELETE", `/api/tables/${table.id}`);
});

await step("analysis starts and stops 50 times", async () => {
  const table = await ask("POST", "/api/tables", { game: "hex", options: { size: 5 }, seats: people(2) });
  await openTable(page, table.id);
  const toggle = page.getByRole("switch", { name: "Analysis" });
  for (let time = 0; time < 50; time++) {
    await toggle.click();
    if (time % 10 === 0) {
      await page.waitForSelector(".candidate .name");
      await page.waitForSelector(".layer-heat .hint.best");
    }
    await toggle.click();
    assert.equal(await page.locator(".layer-heat .hint").count(), 0);
  }
  await toggle.click();
  await page.waitForSelector(".candidate .name");
  await page.locator(".candidate:nth-child(2)").hover();
  await page.waitForSelector(".hint.line-first");
  await page.mouse.move(0, 0);
  await clickOne(page, await look(page), generator(5));
  await page.waitForSelector(".candidates:not(.stale) .candidate .name");
  await toggle.click();
  await ask("DELETE", `/api/tables/${table.id}`);
});

await step("a game is reviewed, a mistake shown, and another move begins a branch", async () => {
  const table = await ask("POST", "/api/tables", { game: "connect_four", seats: people(2), actions: "3 0 3 0 3 6 3" });
  await openTable(page, table.id);
  await page.getByLabel("Simulations per position").selectOption("200");
  await page.getByRole("button", { name: "Review the game" }).click();
  await page.waitForSelector(".mistake-row", { timeout: 30000 });
  await page.locator(".mistake-row").first().click();
  await page.waitForSelector(".hint.best");
  assert.match(page.url(), /ply=\d/);
  const before = await look(page);
  await clickOne(page, before, generator(3));
  await page.waitForSelector(".banner >> text=A branch from ply");
  await page.goBack();
  await page.waitForFunction((id) => location.hash.includes(id), table.id);
  await page.waitForSelector(".ply");
  assert.equal((await look(page)).plies, 7, "the game itself stays");
  await page.keyboard.press("Home");
  await page.waitForSelector('.value-graph[aria-valuenow="0"]');
  await page.keyboard.press("ArrowRight");
  await page.waitForSelector('.value-graph[aria-valuenow="1"]');
  await ask("DELETE", `/api/tables/${table.id}`);
});

await step("a game is taken back, saved and loaded, and a position pasted", async () => {
  const table = await ask("POST", "/api/tables", { game: "tic_tac_toe", seats: people(2), actions: "b2 a1" });
  await openTable(page, table.id);
  await page.getByRole("button", { name: "Take back" }).click();
  await page.waitForSelector('.value-graph[aria-valuemax="1"]');
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("link", { name: "Save", exact: true }).click(),
  ]);
  const file = await download.path();
  await page.goto(`${ADDRESS}/#/play`);
  await page.locator("#record-file").setInputFiles(file);
  await page.waitForSelector('.value-graph[aria-valuemax="1"]');
  assert.ok(!page.url().includes(table.id), "a loaded game is a new table");
  await page.goto(`${ADDRESS}/#/play`);
  await page.getByText("Paste a game or a position").click();
  await page.locator("#record-text").fill("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1");
  await page.getByRole("button", { name: "Open it" }).click();
  await page.waitForSelector(".checkered .target.open");
});

await step("a position is set up by pieces", () => checkSetUp(page));

await step("a link to a position makes it anew, and wrong links say so", async () => {
  const options = encodeURIComponent('{"size":5}');
  await page.goto(`${ADDRESS}/#/position?game=hex&options=${options}&actions=3+7`);
  await page.waitForSelector('.value-graph[aria-valuemax="2"]');
  await page.goto(`${ADDRESS}/#/table/nowhere`);
  await page.waitForSelector(".empty >> text=Start a new game");
  assert.ok((await page.locator(".empty").textContent()).length < 200, "one sentence");
});

await step("runs are watched: curves of two together, and self-play games on a board", async () => {
  await page.goto(`${ADDRESS}/#/watch`);
  await page.waitForSelector(".chart .series");
  await page.locator(".run-row input").nth(1).check();
  await page.waitForSelector(".chart .series-1");
  assert.match(decodeURIComponent(page.url()), /runs=r\d,r\d/);
  await page.waitForSelector(".replay .board .piece");
  await page.getByRole("button", { name: "Open on the board" }).click();
  await page.waitForSelector(".table-board .board");
  assert.ok((await look(page)).plies >= 5, "a whole game of self-play");
});

await step("results are those of the server, and games that are over have no keys", () => checkResults(page));
await step("damaged links say so", () => checkLinks(page));
await step("networks fit the options", () => checkNetworks(page));
await step("a number of players that is none is passed over", () => checkPlayers(page));
await step("values in points are drawn as such", () => checkPoints(page));
await step("boards of any game are drawn as they are", () => checkBoards(page));
await step("hidden pages listen to nothing, and failed engines do not think", () => checkStreams(page));
await step("states that bring no ply take no choice away", () => checkPace(page));
await step("the replay goes on to a new epoch", () => checkReplay(page));

await step("every screen fits 360 px and has names for everything", async () => {
  await page.setViewportSize({ width: 360, height: 740 });
  await page.goto(`${ADDRESS}/#/play`);
  await page.waitForSelector(".game-list input");
  await checkAccess(page, "first screen");
  await page.goto(`${ADDRESS}/#/watch`);
  await page.waitForSelector(".empty, .run-row");
  await checkAccess(page, "runs");
  await page.goto(`${ADDRESS}/#/setup?game=chess`);
  await page.waitForSelector(".set-up-screen .status:not(:empty)");
  await checkAccess(page, "set up");
  for (const setting of GAMES) {
    const table = await tableOf(setting, 9);
    await giveKeys(table);
    await openTable(page, table.id, "?analysis=1");
    await waitForTurn(page);
    await checkAccess(page, setting.game);
    await removeTable(table);
  }
});

await context.close();
console.log("the page of vecaz serve passes");
