// Tables with cards, and boards that are text.

import { html, reconcile, setText } from "./dom.js";

const SUITS = { "♠": "spades", "♥": "hearts", "♦": "diamonds", "♣": "clubs" };
const RANKS = { A: "ace", K: "king", Q: "queen", J: "jack" };

/** The rank and suit of a card's name, or null if it is not of a common pack. */
function partsOf(name) {
  const suit = name.slice(-1);
  return suit in SUITS && name.length > 1 ? { rank: name.slice(0, -1), suit } : null;
}

/** "K♥" as it is read: "king of hearts". */
export function spokenCard(name) {
  const parts = partsOf(name);
  return parts ? `${RANKS[parts.rank] ?? parts.rank} of ${SUITS[parts.suit]}` : name;
}

function face(name) {
  const parts = partsOf(name);
  if (!parts) return [html("span", { class: "card-name" }, name)];
  return [
    html("span", { class: "rank", "aria-hidden": "true" }, parts.rank),
    html("span", { class: "suit", "aria-hidden": "true" }, parts.suit),
  ];
}

const classOf = (name) => {
  const parts = partsOf(name);
  return parts ? `card ${SUITS[parts.suit]}` : "card";
};

export class CardsSurface {
  constructor() {
    this.caption = html("p", { class: "caption" });
    this.trick = html("div", { class: "trick", role: "list", "aria-label": "Trick" });
    this.seats = html("div", { class: "card-seats" });
    this.root = html("div", { class: "board cards" }, this.caption, this.seats, this.trick);
    this.hand = html("div", { class: "hand own-hand" });
    this.root.append(this.hand);
    this.targets = new Map();
    this.names = new Map();
  }

  static key() {
    return "cards";
  }

  /** Cards have no place in a picture. */
  centre() {
    return null;
  }

  nameOf(key) {
    return spokenCard(this.names.get(key) ?? "card");
  }

  contentOf() {
    return "";
  }

  resolve(key) {
    return key;
  }

  pieceAt() {
    return null;
  }

  draw(view, { seat, playerName, lastTrick = [] }) {
    const { caption, columns, seats } = view.board;
    const trick = view.board.trick.length > 0 ? view.board.trick : lastTrick;
    setText(this.caption, caption);
    // The viewer's hand lies below; who sees all hands sees the mover's there.
    const known = seats.map(({ hand }, player) => ({ hand, player })).filter(({ hand }) => hand.length > 0);
    const acting = new Set(view.actions.filter(({ spot }) => "card" in Object(spot)).map(({ spot }) => spot.card));
    const mover = known.find(({ hand }) => hand.some(({ number }) => acting.has(number)))?.player;
    // A table may have fewer players than seats.
    const ownSeat = seat != null && seat < seats.length ? seat : null;
    const own = known.length === 1 ? known[0].player : (mover ?? ownSeat);
    this.targets.clear();
    this.names.clear();
    this.drawSeats(seats, columns, own, playerName, view.colours);
    reconcile(
      this.trick,
      trick,
      ({ player, number }) => `${player}/${number}`,
      ({ player, name }) =>
        html(
          "div",
          { class: "played", role: "listitem", "aria-label": `${playerName(player)}: ${spokenCard(name)}` },
          html("span", { class: classOf(name) }, ...face(name)),
          html("span", { class: "played-by" }, playerName(player)),
        ),
    );
    this.trick.classList.toggle("empty", trick.length === 0);
    this.trick.classList.toggle("over", view.board.trick.length === 0);
    this.trick.setAttribute("aria-label", view.board.trick.length === 0 && trick.length > 0 ? "Last trick" : "Trick");
    const hand = own === null ? [] : seats[own].hand;
    this.hand.classList.toggle("empty", hand.length === 0);
    reconcile(
      this.hand,
      hand,
      ({ number }) => `c${number}`,
      ({ number, name }) =>
        html(
          "div",
          { class: `${classOf(name)} target`, "data-key": `c${number}`, "aria-label": spokenCard(name) },
          ...face(name),
        ),
    );
    for (const [index, element] of [...this.hand.children].entries()) {
      const key = element.dataset.key;
      this.names.set(key, hand[index].name);
      this.targets.set(key, { key, element });
    }
  }

  drawSeats(seats, columns, own, playerName, colours) {
    reconcile(
      this.seats,
      seats.map((seat, player) => ({ seat, player })),
      ({ player }) => `seat${player}`,
      () =>
        html("section", { class: "card-seat" }, html("h3", {}), html("dl", {}), html("div", { class: "hand small" })),
      (element, { seat, player }) => {
        element.setAttribute("aria-label", playerName(player));
        element.classList.toggle("own", player === own);
        const [title, values, hand] = element.children;
        title.className = `colour-${colours[player] ?? "none"}`;
        setText(title, playerName(player));
        reconcile(
          values,
          columns.map((name, index) => ({ name, value: seat.values[index] ?? "" })),
          ({ name }) => name,
          ({ name }) => html("div", {}, html("dt", {}, name), html("dd", {})),
          (item, { value }) => setText(item.lastElementChild, value),
        );
        const shown = player === own ? [] : seat.hand;
        const backs = Array.from({ length: seat.hidden }, (_, index) => ({ back: index }));
        reconcile(
          hand,
          [...shown, ...backs],
          (card) => ("back" in card ? `back${card.back}` : `c${card.number}`),
          (card) =>
            "back" in card
              ? html("span", { class: "card back", "aria-hidden": "true" })
              : html(
                  "span",
                  { class: classOf(card.name), role: "img", "aria-label": spokenCard(card.name) },
                  ...face(card.name),
                ),
        );
        const count = seat.hidden === 1 ? "1 hidden card" : `${seat.hidden} hidden cards`;
        hand.setAttribute("role", "group");
        hand.setAttribute("aria-label", seat.hidden > 0 ? count : "hand");
      },
    );
  }
}

export class TextSurface {
  constructor() {
    this.root = html("pre", { class: "board text", tabindex: "0" });
    this.targets = new Map();
  }

  static key() {
    return "text";
  }

  centre() {
    return null;
  }

  nameOf(key) {
    return key;
  }

  contentOf() {
    return "";
  }

  resolve(key) {
    return key;
  }

  pieceAt() {
    return null;
  }

  draw(view) {
    setText(this.root, view.board.text);
  }
}
