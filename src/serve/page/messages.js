// Messages: a line for errors, and a region that screen readers speak.

import { setText } from "./dom.js";

/** Milliseconds that a message stays. */
const STAYS = 9000;
let timer = null;

/** Shows a sentence until it is closed or time is up. `kind` is "error" or "note". */
export function show(text, kind = "error") {
  const toast = document.getElementById("toast");
  toast.dataset.kind = kind;
  setText(toast.firstElementChild, text);
  toast.hidden = false;
  clearTimeout(timer);
  timer = setTimeout(hide, STAYS);
}

export function hide() {
  document.getElementById("toast").hidden = true;
}

/** Speaks a sentence to those who do not see the board. */
export function announce(text) {
  setText(document.getElementById("announcer"), text);
}

/** Runs what may fail, and shows the error; undefined then. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    show(error.message);
    return undefined;
  }
}
