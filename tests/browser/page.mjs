// The page as its reader sees it: what can be chosen, by mouse or by keys.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const { chromium } = createRequire(join(process.env.MODULES, "/"))("playwright-core");
export const ADDRESS = process.env.ADDRESS;

/** A browser of its own, without anything from the network. */
export function openBrowser() {
  return chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), "vecaz-chromium-")), {
    executablePath: process.env.CHROMIUM,
    viewport: { width: 1280, height: 800 },
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** Random numbers that are the same in every run. */
export function generator(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A new page; what it complains about fails the test, refusals that were provoked excepted. */
export async function openPage(context, problems) {
  const page = await context.newPage();
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !/status of 4\d\d/.test(message.text()))
      problems.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(ADDRESS) && !request.url().startsWith("data:"))
      problems.push(`request to ${request.url()}`);
  });
  return page;
}

/** Asks the server itself, for what the page does not show. */
export async function ask(method, path, body) {
  const options =
    body === undefined
      ? { method }
      : { method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  const reply = await fetch(ADDRESS + path, options);
  const text = await reply.text();
  assert.ok(reply.ok, `${method} ${path}: ${text}`);
  return text ? JSON.parse(text) : undefined;
}

/** Removes a table, as one who sits there if anybody does. */
export async function removeTable({ id, keys }) {
  const seat = keys.findIndex(Boolean);
  const claim = seat < 0 ? "" : `?seat=${seat}&key=${encodeURIComponent(keys[seat])}`;
  await ask("DELETE", `/api/tables/${id}${claim}`);
}

/** Goes to a table and waits for its board. */
export async function openTable(page, id, parameters = "") {
  await page.goto(`${ADDRESS}/#/table/${id}${parameters}`);
  await page.waitForSelector(".board-frame > .board");
}

/** What the page shows of the game: open targets, buttons, an open choice, the number of plies, the end. */
export function look(page) {
  return page.evaluate(() => {
    const keys = (selector) => [...document.querySelectorAll(selector)].map((element) => element.dataset.key);
    const slider = document.querySelector(".value-graph");
    return {
      open: keys(".board-frame .target.open"),
      buttons: [...document.querySelectorAll(".actions .action")].map((element) => element.textContent),
      choosing: !document.querySelector(".chooser").hidden,
      started: document.querySelector(".board-area").classList.contains("choosing"),
      plies: Number(slider.getAttribute("aria-valuemax")),
      over: document.querySelector(".status").dataset.kind === "over",
    };
  });
}

/** Waits until there is something to choose, or the game is over. */
export async function waitForTurn(page) {
  await page.waitForFunction(
    () => {
      const over = document.querySelector(".status")?.dataset.kind === "over";
      const busy = document.querySelector('.board-area[aria-busy="true"]');
      return over || (!busy && document.querySelector(".board-frame .target.open, .actions .action"));
    },
    undefined,
    { timeout: 8000 },
  );
  return look(page);
}

/** Waits until the board has moved on from `before`. */
export async function waitForPly(page, before) {
  await page.waitForFunction(
    ({ plies }) => {
      const over = document.querySelector(".status").dataset.kind === "over";
      return over || Number(document.querySelector(".value-graph").getAttribute("aria-valuemax")) > plies;
    },
    before,
    { timeout: 8000 },
  );
}

/** A point inside a target that nothing covers: for edges a third of their length, for others the middle. */
async function clickTarget(page, key) {
  const point = await page.evaluate((wanted) => {
    const element = document.querySelector(`.board-frame .target[data-key="${wanted}"]`);
    element.scrollIntoView({ block: "nearest" });
    const hits = (x, y) => document.elementFromPoint(x, y)?.closest("[data-key]")?.dataset.key === wanted;
    if (element.tagName === "line") {
      const matrix = element.getScreenCTM();
      for (let part = 0.12; part < 0.9; part += 0.02) {
        const at = (name) =>
          Number(element.getAttribute(`${name}1`)) * (1 - part) + Number(element.getAttribute(`${name}2`)) * part;
        const { x, y } = new DOMPoint(at("x"), at("y")).matrixTransform(matrix);
        if (hits(x, y)) return { x, y };
      }
      return null;
    }
    const box = element.getBoundingClientRect();
    const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    return hits(middle.x, middle.y) ? middle : null;
  }, key);
  assert.ok(point, `nothing of ${key} can be clicked`);
  await page.mouse.click(point.x, point.y);
}

const PASSES = ["pass", "no move"];

/** Chooses one step by mouse: a target, or a button, passes only if `pass` is wished or nothing else is there. */
export async function clickOne(page, seen, draw, { pass = false } = {}) {
  if (seen.choosing) {
    await page.locator(".chooser .choice").nth(0).click();
    return;
  }
  const wished = pass ? seen.buttons.findIndex((text) => PASSES.includes(text)) : -1;
  const useful = seen.buttons.filter((text) => !PASSES.includes(text));
  const choices = seen.open.length + useful.length;
  if (wished >= 0) await page.locator(".actions .action").nth(wished).click();
  else if (choices === 0) await page.locator(".actions .action").first().click();
  else {
    const index = draw(choices);
    if (index < seen.open.length) await clickTarget(page, seen.open[index]);
    else
      await page
        .getByRole("button", { name: useful[index - seen.open.length], exact: true })
        .first()
        .click();
  }
}

const ARROWS = ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "PageDown"];

/** Chooses one step by keys alone; the focus must be where something can be chosen. */
export async function typeOne(page, seen, draw, { pass = false } = {}) {
  const where = () =>
    page.evaluate(() => {
      const active = document.activeElement;
      if (active.closest(".chooser")) return "chooser";
      if (active.closest(".actions")) return "actions";
      return active.closest(".board-frame .target") ? "board" : "elsewhere";
    });
  let at = await where();
  const wanted = seen.choosing
    ? "chooser"
    : seen.open.length > 0 && !(pass && seen.buttons.some((text) => PASSES.includes(text)))
      ? "board"
      : "actions";
  for (let step = 0; at !== wanted && step < 60; step++) {
    await page.keyboard.press("Tab");
    at = await where();
  }
  assert.equal(at, wanted, "Tab leads to what can be chosen");
  if (wanted === "actions") {
    const target = pass ? seen.buttons.findIndex((text) => PASSES.includes(text)) : draw(seen.buttons.length);
    for (let step = 0; step < 60; step++) {
      const text = await page.evaluate(() =>
        document.activeElement.dataset.action ? document.activeElement.textContent : null,
      );
      if (text === seen.buttons[Math.max(0, target)]) break;
      await page.keyboard.press("Tab");
    }
  } else if (wanted === "board") {
    const steps = 1 + draw(3);
    for (let step = 0; step < steps; step++) await page.keyboard.press(ARROWS[draw(ARROWS.length)]);
    const isOpen = await page.evaluate(() => document.activeElement.classList.contains("open"));
    // Arrow keys end on what can be chosen, unless they had no way to go from a place that cannot.
    if (!isOpen) await page.keyboard.press("PageDown");
  }
  await page.keyboard.press("Enter");
}

/** Plays the game on the page to its end by `chooseOne`; returns the number of steps. */
export async function playToEnd(page, chooseOne, draw, { passAfter = Infinity, most = 2000 } = {}) {
  for (let step = 0; step < most; step++) {
    const seen = await waitForTurn(page);
    if (seen.over) return step;
    await chooseOne(page, seen, draw, { pass: seen.plies > passAfter });
    const now = await look(page);
    // A first step or an open choice changes the board without a ply.
    if (!now.over && !now.started && !now.choosing && now.plies === seen.plies && seen.started === now.started)
      await waitForPly(page, seen);
  }
  assert.fail(`the game has not ended after ${most} steps`);
}

/** What keeps people out: elements without a name, or a page that is wider than its window. */
export async function checkAccess(page, where) {
  const found = await page.evaluate(() => {
    const isSeen = (element) => element.getClientRects().length > 0;
    const nameOf = (element) =>
      (element.getAttribute("aria-label") || element.textContent || element.labels?.[0]?.textContent || "").trim();
    const controls = [
      ...document.querySelectorAll("button, a, select, input, [role=button], [role=slider], [role=switch]"),
    ].filter(isSeen);
    const nameless = controls.filter((element) => !nameOf(element)).map((element) => element.outerHTML.slice(0, 120));
    const { scrollWidth, clientWidth } = document.documentElement;
    return { nameless, tooWide: scrollWidth > clientWidth ? `${scrollWidth} of ${clientWidth} px` : null };
  });
  assert.deepEqual(found, { nameless: [], tooWide: null }, where);
}
