// Pages of `vecaz report`, opened from disk in Chromium: games are stepped through with buttons and keys, and nothing is fetched.

import assert from "node:assert/strict";
import { openBrowser } from "./page.mjs";

const context = await openBrowser();
for (const path of process.env.REPORTS.split(":")) {
  const page = await context.newPage();
  const [problems, requests] = [[], []];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(`file://${path}`);
  const sections = page.locator("section.games");
  const count = await sections.count();
  assert.ok(count > 0, `${path} has no games`);
  for (let index = 0; index < count; index++) {
    const section = sections.nth(index);
    const status = () => section.locator(".status").textContent();
    const pieces = () => section.locator(".piece").count();
    const games = section.getByLabel("Game", { exact: true });
    const names = await games.locator("option").count();
    assert.equal(names, 3);
    await games.selectOption(String(names - 1));
    const last = Number((await status()).match(/^Ply 0 of (\d+)/)[1]);
    assert.equal(await pieces(), 0);
    for (let ply = 1; ply <= last; ply++) {
      if (ply % 2) await section.getByRole("button", { name: "Forward" }).click();
      else await page.keyboard.press("ArrowRight");
      assert.equal(await pieces(), ply, "a stone for each ply");
      if (ply < last) assert.match(await status(), new RegExp(`^Ply ${ply} of ${last}`));
    }
    assert.match(await status(), /^(Blue wins|Red wins|A draw)\.$/);
    await page.keyboard.press("ArrowLeft");
    assert.match(await status(), new RegExp(`^Ply ${last - 1} of`));
    await page.keyboard.press("Home");
    assert.equal(await pieces(), 0);
    await section.getByRole("button", { name: `Ply ${last}: ` }).click();
    assert.equal(await pieces(), last);
  }
  assert.deepEqual(problems, []);
  assert.deepEqual(requests, [`file://${path}`], "the page is one file");
  await page.close();
  console.log(`ok: ${path}`);
}
await context.close();
