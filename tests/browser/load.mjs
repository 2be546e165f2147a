// Eight browsers at once analyse for a while: 60 analyses a minute, all answered, and the server's memory stays flat. Then the first paint, and the
// review of a game of Hex. `MINUTES` (default 0.5) is the time; node tests/browser/load.mjs is started by long.sh.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { ADDRESS, ask, openBrowser, openPage, openTable } from "./page.mjs";

const MINUTES = Number(process.env.MINUTES ?? 0.5);
const BROWSERS = 8;
/** Milliseconds between two analyses of one browser: 60 a minute from eight. */
const PERIOD = 8000;
const PID = process.env.SERVER_PID;

/** KiB that the server holds in memory, and its CPU seconds. */
const memory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${PID}/status`, "utf8"))[1]);
function cpuSeconds() {
  const fields = readFileSync(`/proc/${PID}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

async function analyseAgain(page, state) {
  const toggle = page.getByRole("switch", { name: "Analysis" });
  const start = performance.now();
  await toggle.click();
  await page.waitForSelector(".candidates:not(.stale) .candidate .name");
  state.first.push(performance.now() - start);
  await wait(1500);
  await toggle.click();
  state.analyses += 1;
}

async function browse(number, until, state) {
  const context = await openBrowser();
  const problems = [];
  const page = await openPage(context, problems);
  const games = [["hex", { size: 7 }], ["chess", {}], ["gomoku", { size: 9 }], ["connect_four", {}]];
  const [game, options] = games[number % games.length];
  const people = [{ kind: "human" }, { kind: "human" }];
  await wait((number * PERIOD) / BROWSERS);
  for (let round = 0; Date.now() < until; round++) {
    const start = Date.now();
    const table = await ask("POST", "/api/tables", { game, options, seats: people });
    await openTable(page, table.id);
    await analyseAgain(page, state);
    await page.goto("about:blank");
    await ask("DELETE", `/api/tables/${table.id}`);
    await wait(Math.max(0, PERIOD - (Date.now() - start)));
  }
  await context.close();
  assert.deepEqual(problems, []);
}

async function load() {
  const state = { analyses: 0, first: [] };
  const until = Date.now() + MINUTES * 60_000;
  const samples = [];
  const timer = setInterval(() => samples.push(memory()), Math.max(1000, (MINUTES * 60_000) / 60));
  await Promise.all(Array.from({ length: BROWSERS }, (_, number) => browse(number, until, state)));
  clearInterval(timer);
  const third = Math.max(1, Math.floor(samples.length / 3));
  const mean = (list) => list.reduce((sum, value) => sum + value, 0) / list.length / 1024;
  const [before, after] = [mean(samples.slice(third, 2 * third)), mean(samples.slice(-third))];
  const sorted = state.first.sort((a, b) => a - b);
  console.log(
    `${state.analyses} analyses in ${MINUTES} minutes (${(state.analyses / MINUTES).toFixed(0)} a minute) from ${BROWSERS} browsers; ` +
      `first candidates after ${sorted[sorted.length >> 1].toFixed(0)} ms (median), ${sorted.at(-1).toFixed(0)} ms (most); ` +
      `memory ${before.toFixed(0)} MiB in the second third, ${after.toFixed(0)} MiB in the last, ${(Math.max(...samples) / 1024).toFixed(0)} MiB at most`,
  );
  assert.ok(state.analyses >= 55 * MINUTES, "60 analyses a minute");
  assert.ok(after < before * 1.1 + 20, "memory is flat");
}

/** First contentful paint in milliseconds, of a browser that has nothing of the page. */
async function firstPaint() {
  const paints = [];
  for (let time = 0; time < 5; time++) {
    const context = await openBrowser();
    const page = await context.newPage();
    await page.goto(ADDRESS);
    await page.waitForSelector(".game-list input");
    paints.push(
      await page.evaluate(
        () => performance.getEntriesByType("paint").find(({ name }) => name === "first-contentful-paint").startTime,
      ),
    );
    await context.close();
  }
  paints.sort((a, b) => a - b);
  console.log(`first paint after ${paints[2].toFixed(0)} ms (median of 5, ${paints[4].toFixed(0)} ms at most)`);
  assert.ok(paints[2] < 500, "first paint under half a second");
}

/** A whole game of Hex 13 x 13, reviewed at 200 simulations a move. */
async function reviewOfHex() {
  const network = (await ask("GET", "/api/info")).networks.find(
    ({ game, options }) => game === "hex" && options?.size === 13,
  );
  const options = network?.options ?? { size: 13 };
  const table = await ask("POST", "/api/tables", { game: "hex", options });
  let seed = 7;
  const random = (below) => (seed = (seed * 48271) % 2147483647) % below;
  let state = table;
  while (state.turn.kind === "player" && state.plies < 90) {
    const { actions } = state.view;
    state = await ask("POST", `/api/tables/${table.id}/play`, { action: actions[random(actions.length)].action });
  }
  for (const id of [...(network ? [network.id] : []), "uniform"]) {
    const [start, cpu] = [performance.now(), cpuSeconds()];
    const reply = await fetch(`${ADDRESS}/api/tables/${table.id}/review?network=${id}&simulations=200`);
    const text = await reply.text();
    const plies = text.split("event: ply").length - 1;
    assert.ok(text.includes("event: done"), text.slice(-300));
    console.log(
      `review of ${plies} plies of Hex 13 x 13 at 200 simulations with ${id}: ${((performance.now() - start) / 1000).toFixed(1)} s, ` +
        `${(cpuSeconds() - cpu).toFixed(1)} s of CPU`,
    );
  }
  await ask("DELETE", `/api/tables/${table.id}`);
}

await firstPaint();
await reviewOfHex();
await load();
