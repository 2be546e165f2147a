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
  const state = await attempt(async () => createTable({ record: await file.text() }));
  if (state) go("table", state.id);
}
