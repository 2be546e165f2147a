// Starts the page: screens by the address, theme, files that are dropped.

import { createTable } from "./api.js";
import { attempt, hide, show } from "./messages.js";
import { openFile } from "./records.js";
import { parseRoute } from "./route.js";
import { readSetting, writeSetting } from "./settings.js";
import { SetUpScreen } from "./set_up.js";
import { PlayScreen } from "./start.js";
import { TableScreen } from "./table.js";
import { WatchScreen } from "./watch.js";

const SCREENS = { play: PlayScreen, setup: SetUpScreen, table: TableScreen, watch: WatchScreen };
let current = null;

/** Opens a link to a position: its game, options and moves make a new table. */
async function openPosition({ parameters }) {
  const { game, actions, options, placed } = Object.fromEntries(parameters);
  let body = { game, actions };
  try {
    if (options) body = { ...body, options: JSON.parse(options) };
    if (placed) body = { ...body, placed: JSON.parse(placed) };
  } catch {
    show("The link to this position is damaged: its options or pieces cannot be read.");
  }
  const state = await attempt(() => createTable(body));
  location.replace(state ? `#/table/${state.id}` : "#/play");
}

function route() {
  const next = parseRoute(location.hash);
  if (next.screen === "position") {
    openPosition(next);
    return;
  }
  const Screen = SCREENS[next.screen] ?? PlayScreen;
  hide();
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
