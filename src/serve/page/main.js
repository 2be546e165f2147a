// Starts the page: screens by the address, theme, files that are dropped.

import { createTable } from "./api.js";
import { hide, show } from "./messages.js";
import { openFile } from "./records.js";
import { parseRoute } from "./route.js";
import { readSetting, writeSetting } from "./settings.js";
import { SetUpScreen } from "./set_up.js";
import { PlayScreen } from "./start.js";
import { TableScreen } from "./table.js";
import { WatchScreen } from "./watch.js";

const SCREENS = { __proto__: null, play: PlayScreen, setup: SetUpScreen, table: TableScreen, watch: WatchScreen };
let current = null;
/** Why a link led to the first screen, to be shown there. */
let refusal = null;

/** The request for a table of a link to a position, by its game, options and moves. */
function tableOf({ game, actions, options, placed }) {
  try {
    const given = options ? { options: JSON.parse(options) } : {};
    return { game, actions, ...given, ...(placed ? { placed: JSON.parse(placed) } : {}) };
  } catch {
    throw new Error("The link to this position is damaged: its options or pieces cannot be read.");
  }
}

/** Opens a link to a position on a new table. */
async function openPosition({ parameters }) {
  try {
    const { id } = await createTable(tableOf(Object.fromEntries(parameters)));
    location.replace(`#/table/${id}`);
  } catch (error) {
    refusal = error.message;
    location.replace("#/play");
  }
}

function route() {
  const next = parseRoute(location.hash);
  if (next.screen === "position") {
    openPosition(next);
    return;
  }
  const Screen = SCREENS[next.screen] ?? PlayScreen;
  hide();
  if (refusal) show(refusal);
  refusal = null;
  for (const link of document.querySelectorAll("nav [data-screen]")) {
    if (SCREENS[link.dataset.screen] === Screen) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (current instanceof Screen && current.id === next.id) {
    current.reroute?.(next);
    return;
  }
  current?.close();
  const main = document.getElementById("main");
  current = new Screen(next);
  main.replaceChildren(current.root);
  scrollTo(0, 0);
  if (document.activeElement === document.body) main.focus({ preventScroll: true });
}

function setUpTheme() {
  const stored = readSetting("theme");
  if (stored) document.documentElement.dataset.theme = stored;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    writeSetting("theme", next);
  });
}

function setUpDrop() {
  const isFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragover", (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("dropping");
  });
  addEventListener("drop", (event) => {
    document.body.classList.remove("dropping");
    const [file] = event.dataTransfer?.files ?? [];
    if (!file) return;
    event.preventDefault();
    openFile(file);
  });
}

setUpTheme();
setUpDrop();
document.querySelector("#toast button").addEventListener("click", hide);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
addEventListener("hashchange", route);
route();
