// A position is set up by clicks, refused where it cannot come about, and played.

import assert from "node:assert/strict";
import { ADDRESS, ask, look, waitForTurn } from "./page.mjs";

/** Chooses a piece of the palette: 0 the first player's, 1 the second's. */
const choosePiece = (page, index) => page.locator(".palette").nth(0).locator("label").nth(index).click();
/** Chooses who is to move. */
const choosePlayer = (page, player) => page.locator(".palette").nth(1).locator("label").nth(player).click();
const click = (page, cell) => page.locator(`.target[data-key="p${cell}"]`).click();

export async function checkSetUp(page) {
  await page.goto(`${ADDRESS}/#/play`);
  await page.waitForSelector(".game-list input");
  const options = encodeURIComponent('{"size":4}');
  await page.goto(`${ADDRESS}/#/setup?game=hex&options=${options}`);
  await page.waitForSelector('.status >> text="This position can be played."');
  await click(page, 5);
  await page.waitForSelector(".status >> text=player 1 is to move");
  assert.equal(await page.getByRole("button", { name: "Play from here" }).isDisabled(), true);
  await choosePlayer(page, 1);
  await page.waitForSelector('.status >> text="This position can be played."');
  await choosePiece(page, 1);
  await click(page, 10);
  await choosePlayer(page, 0);
  await page.waitForSelector('.status >> text="This position can be played."');
  // The position is in the address: a reload keeps it.
  await page.reload();
  await page.waitForSelector('.status >> text="This position can be played."');
  assert.equal(await page.locator(".board .piece").count(), 2);
  await page.getByRole("button", { name: "Play from here" }).click();
  await page.waitForSelector(".table-side .players");
  const before = await waitForTurn(page);
  assert.equal(before.plies, 0);
  assert.equal(before.open.length, 14, "two cells of sixteen are taken");
  const table = page.url().match(/table\/(\w+)/)[1];
  const state = await ask("GET", `/api/tables/${table}`);
  assert.equal(state.placed.cells, ".....0....1.....");
  // The table's own way to the pieces.
  await page.getByRole("button", { name: "Set up" }).click();
  await page.waitForSelector(".set-up-screen .board .piece");
  assert.equal(await page.locator(".board .piece").count(), 2);
  await page.goBack();
  await page.waitForSelector(".table-side .players");
  assert.equal((await look(page)).plies, 0);
  await ask("DELETE", `/api/tables/${table}`);

  // A link with pieces that the board does not have says so, and the start is shown.
  const damaged = encodeURIComponent(JSON.stringify({ cells: "z".repeat(16), player: 0 }));
  await page.goto(`${ADDRESS}/#/setup?game=hex&options=${options}&placed=${damaged}`);
  await page.waitForSelector("text=its pieces are not those of this board");
  await page.waitForSelector('.status >> text="This position can be played."');
  assert.equal(await page.locator(".board .piece").count(), 0);

  // A game whose positions are more than pieces says so.
  await page.goto(`${ADDRESS}/#/setup?game=blob`);
  await page.waitForSelector(".empty >> text=No position can be set up here.");
}
