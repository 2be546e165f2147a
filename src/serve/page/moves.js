// The moves of a game as a list in which a ply can be chosen.

import { button, html, reconcile } from "./dom.js";
import { percent } from "./wording.js";

/** Outcomes of chance in a row that are shown one by one; longer rows are a deal. */
const MOST_OUTCOMES = 2;
/** A move that loses at least this much is a mistake, and a blunder from the second figure on. */
export const MISTAKE = 0.1;
export const BLUNDER = 0.3;

/** The entries of a history, with long rows of chance and of hidden plies as one: `{end, text, player, kind}`. */
function entriesOf(history) {
  const entries = [];
  for (let at = 0; at < history.length;) {
    const isDealt = ({ kind, hidden }) => kind === "chance" || hidden;
    let end = at;
    while (end < history.length && isDealt(history[end])) end++;
    if (end - at > MOST_OUTCOMES || (end > at && history[at].hidden)) {
      entries.push({ at, end, text: end - at === 1 ? "dealt" : `${end - at} dealt`, kind: "chance", player: null });
      at = end;
    } else {
      const { name, kind, player } = history[at];
      entries.push({ at, end: at + 1, text: name, kind, player });
      at += 1;
    }
  }
  return entries;
}

/** True if two players have taken turns from the start. */
const alternates = (history) => history.every(({ kind, player }, ply) => kind === "player" && player === ply % 2);

export class MoveList {
  constructor({ onPly }) {
    this.onPly = onPly;
    this.root = html("div", { class: "move-list", role: "group", "aria-label": "Moves" });
  }

  /** `losses`: a map of plies to what the move made there lost, in points where `points` is not null. */
  draw({ history, ply, players, losses, colours, points = null }) {
    const inPairs = players === 2 && alternates(history);
    this.root.classList.toggle("pairs", inPairs);
    const items = [];
    for (const entry of entriesOf(history)) {
      if (inPairs && entry.at % 2 === 0) items.push({ number: entry.at / 2 + 1 });
      items.push(entry);
    }
    reconcile(
      this.root,
      items,
      (item) => (item.number ? `n${item.number}` : `${item.at}-${item.end}-${item.text}`),
      (item) =>
        item.number
          ? html("span", { class: "move-number" }, `${item.number}.`)
          : button(item.text, () => this.onPly(item.end), {
              class: `ply ${item.kind}${item.player === null ? "" : ` colour-${colours[item.player] ?? "none"}`}`,
            }),
      (element, item) => {
        if (item.number) return;
        const isNow = item.end === ply;
        if (isNow) element.setAttribute("aria-current", "step");
        else element.removeAttribute("aria-current");
        const loss = losses.get(item.at);
        element.classList.toggle("mistake", loss >= MISTAKE && loss < BLUNDER);
        element.classList.toggle("blunder", loss >= BLUNDER);
        const lost = () => (points === null ? `${percent(loss / 2)} of a win` : `${Number(loss.toFixed(2))} points`);
        element.title = loss === undefined ? "" : `loses ${lost()}`;
      },
    );
    this.reveal(ply);
  }

  /** Scrolls the list, and nothing else, to the present ply. */
  reveal(ply) {
    const seen = `${ply}/${this.root.clientHeight}`;
    if (seen === this.revealed) return;
    this.revealed = seen;
    const now = this.root.querySelector("[aria-current]");
    if (!now) {
      this.root.scrollTop = 0;
      return;
    }
    const [box, frame] = [now.getBoundingClientRect(), this.root.getBoundingClientRect()];
    if (box.top < frame.top) this.root.scrollTop -= frame.top - box.top + 8;
    if (box.bottom > frame.bottom) this.root.scrollTop += box.bottom - frame.bottom + 8;
  }
}
