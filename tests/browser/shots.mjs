// Pictures of every page at three widths, dark and light, for people to look at: SHOTS=folder tests/browser/long.sh VECAZ RUN...

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ADDRESS, ask, openBrowser } from "./page.mjs";

const FOLDER = process.env.SHOTS;
mkdirSync(FOLDER, { recursive: true });
const people = (count) => Array.from({ length: count }, () => ({ kind: "human" }));
const TABLES = [
  ["hex", { size: 7 }, "d4 c5 e3 b6 d5 e6"],
  ["chess", {}, "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6"],
  ["go", { size: 9 }, "E5 C3 G7 G3 C7"],
  ["backgammon", {}, null],
];

const context = await openBrowser();
const pages = [
  ["play", "#/play"],
  ["watch", "#/watch"],
  ["setup-chess", "#/setup?game=chess"],
];
for (const [game, options, actions] of TABLES) {
  const table = await ask("POST", "/api/tables", { game, options, seats: people(2), seed: 4, ...(actions ? { actions } : {}) });
  pages.push([`table-${game}`, `#/table/${table.id}?analysis=1`]);
}
const cards = await ask("POST", "/api/tables", {
  game: "blob",
  options: { players: 3, cards: 5 },
  seats: [{ kind: "human" }, ...[0, 1].map(() => ({ kind: "engine", network: "uniform", simulations: 4 }))],
  seed: 4,
});
pages.push(["table-blob", `#/table/${cards.id}`]);

const page = await context.newPage();
await page.goto(ADDRESS);
await page.evaluate((entry) => localStorage.setItem("vecaz.keys", JSON.stringify([entry])), { id: cards.id, keys: cards.keys });
for (const scheme of ["light", "dark"]) {
  await page.emulateMedia({ colorScheme: scheme });
  for (const width of [1280, 768, 390]) {
    await page.setViewportSize({ width, height: width === 390 ? 844 : 900 });
    for (const [name, hash] of pages) {
      await page.goto("about:blank");
      await page.goto(`${ADDRESS}/${hash}`);
      await page.waitForTimeout(name.startsWith("table") ? 1500 : 1000);
      await page.screenshot({ path: join(FOLDER, `${name}-${width}-${scheme}.png`), fullPage: width < 1280 });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      if (wide) console.log(`${name} is wider than ${width} px`);
    }
  }
}
await context.close();
console.log(`pictures are in ${FOLDER}`);
