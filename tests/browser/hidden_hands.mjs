// A game of Blob against networks: no card of another hand may reach the browser before it is played.

import assert from "node:assert/strict";
import { ADDRESS, ask, clickOne, generator, look, openPage, openTable, playToEnd } from "./page.mjs";

const CARD = /(?:10|[2-9JQKA])[♠♥♦♣]/g;
const PLAYERS = 3;

/** Collects every text that the browser gets from the server. */
async function listenIn(context, page, texts) {
  const session = await context.newCDPSession(page);
  await session.send("Network.enable");
  session.on("Network.eventSourceMessageReceived", ({ data }) => texts.push(data));
  page.on("response", async (reply) => {
    if (reply.headers()["content-type"]?.includes("json")) texts.push(await reply.text().catch(() => ""));
  });
}

/** The cards that player 0 may know after `plies` plies: those dealt to that player, and those played by anybody. */
function knownCards(history, plies) {
  const known = new Set();
  let place = 0;
  for (const { kind, name } of history.slice(0, plies)) {
    // Cards are dealt in turn, player 0 first.
    if (kind === "player") place = 0;
    else place += 1;
    if (kind === "player" || place % PLAYERS === 1) known.add(name);
  }
  return known;
}

export async function checkHiddenHands(context, problems) {
  const engine = { kind: "engine", network: "uniform", simulations: 2 };
  const options = { players: PLAYERS, cards: 6 };
  const table = await ask("POST", "/api/tables", {
    game: "blob",
    options,
    seats: [{ kind: "human" }, engine, engine],
    seed: 3,
  });
  const page = await openPage(context, problems);
  const texts = [];
  await listenIn(context, page, texts);
  await page.goto(ADDRESS);
  await page.evaluate((entry) => localStorage.setItem("vecaz.keys", JSON.stringify([entry])), {
    id: table.id,
    keys: table.keys,
  });
  await openTable(page, table.id);
  const shown = [];
  const chooseAndKeep = async (...step) => {
    shown.push({ plies: (await look(page)).plies, text: await page.content() });
    await clickOne(...step);
  };
  await playToEnd(page, chooseAndKeep, generator(4));
  const { history } = await ask("GET", `/api/tables/${table.id}`);
  assert.ok(
    history.every(({ hidden }) => !hidden),
    "at the end the whole game is open",
  );

  const sent = texts.flatMap((text) => {
    const state = text.startsWith("{") ? JSON.parse(text) : {};
    return state.view && !state.returns ? [{ plies: state.plies, text }] : [];
  });
  assert.ok(sent.length > 20 && shown.length > 5, `${sent.length} messages and ${shown.length} pages were looked at`);
  let cards = 0;
  for (const { plies, text } of [...sent, ...shown]) {
    const known = knownCards(history, plies);
    for (const card of text.match(CARD) ?? []) {
      assert.ok(known.has(card), `${card} of another hand reached the browser at ply ${plies}`);
      cards += 1;
    }
  }
  assert.ok(cards > 50, `${cards} cards were looked at`);
  await page.close();
}
