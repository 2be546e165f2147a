// Numbers, names and results in words.

/** "connect_four" as "Connect four". */
export function gameName(name) {
  const words = name.replaceAll("_", " ");
  return words[0].toUpperCase() + words.slice(1);
}

export const capital = (text) => (text ? text[0].toUpperCase() + text.slice(1) : text);

/** A value in [-1, 1] with its sign. */
export function signed(value) {
  if (value === null || value === undefined) return "–";
  const text = Math.abs(value).toFixed(2);
  return value < 0 && text !== "0.00" ? `−${text}` : text === "0.00" ? "0.00" : `+${text}`;
}

/** A share as "37 %", small ones as "<1 %". */
export function percent(share) {
  if (share > 0 && share < 0.005) return "<1 %";
  return `${Math.round(share * 100)} %`;
}

/** 12345 as "12,345". */
export const grouped = (number) => Math.round(number).toLocaleString("en");

/** 12345 as "12.3 k". */
export function short(number) {
  if (number >= 1e6) return `${(number / 1e6).toFixed(1)} M`;
  if (number >= 1e4) return `${(number / 1e3).toFixed(1)} k`;
  return grouped(number);
}

/** "1 update", "2 updates". */
export const counted = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;

/** The options of a game as "size 9, opening swap2". */
export function optionsText(options) {
  return Object.entries(options ?? {})
    .filter(([, value]) => String(value).length < 24)
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`)
    .join(", ");
}

/** A player as people speak: "White", "You", or "Player 2", counted from 0 as in all texts of vecaz. */
export function playerName(state, player) {
  const { colour } = state.players[player] ?? {};
  return state.players.length === 2 && colour ? capital(colour) : `Player ${player}`;
}

/** The end of a game in words: its result, with the players by their colours. */
export function resultText(state) {
  const { result, returns, scores } = state;
  if (!returns) return "";
  const points = scores && scores.some((score, player) => Math.abs(score - returns[player]) > 1e-6);
  const tail = points ? ` (${scores.map((score) => Number(score.toFixed(2))).join(" : ")})` : "";
  if (returns.length === 1) return `The game is over with ${Number((scores ?? returns)[0].toFixed(2))}.`;
  const named = result.replace(/player (\d+)/g, (_, player) => playerName(state, Number(player)));
  return `${capital(named)}${tail}.`;
}
