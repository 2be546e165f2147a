// Records of games as files: opening and saving.

import { createTable } from "./api.js";
import { attempt, show } from "./messages.js";
import { go } from "./route.js";

/** The longest file that the server reads. */
const MOST_BYTES = 1_000_000;

/** Makes a table of a file's game. */
export async function openFile(file) {
  if (file.size > MOST_BYTES) {
    show(`${file.name} has ${file.size} bytes; a record has at most ${MOST_BYTES}.`);
    return;
  }
  await openText(await file.text());
}

/** Makes a table of a game or a position as text: SGF, PGN, FEN, .mat or vecaz's own. */
export async function openText(record) {
  const state = await attempt(() => createTable({ record }));
  if (state) go("table", state.id);
}
