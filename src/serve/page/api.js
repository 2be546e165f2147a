// The server's interface: requests, event streams, and the keys of seats with hidden hands.

import { readSetting, writeSetting } from "./settings.js";

/** An error in a sentence for people. */
export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function failure(reply) {
  const text = await reply.text().catch(() => "");
  try {
    return new ApiError(JSON.parse(text).error, reply.status);
  } catch {
    return new ApiError(text.trim().slice(0, 300) || `The server answered with status ${reply.status}.`, reply.status);
  }
}

/** The JSON reply to a request; undefined if the reply is empty. */
export async function request(method, path, body) {
  const options = { method };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { "Content-Type": "application/json" };
  }
  let reply;
  try {
    reply = await fetch(path, options);
  } catch {
    throw new ApiError("The server does not answer; is vecaz serve still running?", 0);
  }
  if (!reply.ok) throw await failure(reply);
  return reply.status === 204 ? undefined : reply.json();
}

/** A path with those parameters that have a value. */
export function withQuery(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/**
 * Listens to server-sent events: `handlers` by event, with parsed data. `lost` is called with true when the connection breaks and with
 * false when it is there again, `refused` when the server wants none. Returns what closes it.
 */
export function listen(path, handlers, { lost = () => {}, refused = () => {} } = {}) {
  const source = new EventSource(path);
  for (const [event, handler] of Object.entries(handlers)) {
    source.addEventListener(event, ({ data }) => {
      if (source.readyState !== EventSource.CLOSED) handler(JSON.parse(data));
    });
  }
  source.addEventListener("open", () => lost(false));
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) refused();
    else lost(true);
  });
  return () => source.close();
}

/** The view with all its lists, those that the server omits because they are empty too. */
export function fullView(view) {
  return { marks: [], line: [], dice: [], notes: [], last: [], actions: [], ...view };
}

/** Tables whose keys are kept. */
const MOST_KEYS = 50;

/** Keeps the keys of a table's seats in this browser, so that a hidden hand is still there after a reload. Games that hide nothing need none. */
export function keepKeys({ id, keys, hidden_information: isHidden, turn }) {
  if (!isHidden || turn.kind === "over" || !keys?.some(Boolean)) return;
  const others = (readSetting("keys") ?? []).filter((entry) => entry.id !== id);
  writeSetting("keys", [{ id, keys }, ...others].slice(0, MOST_KEYS));
}

/** The keys of a table's seats, with null for seats that are not ours. */
export const keysOf = (id) => (readSetting("keys") ?? []).find((entry) => entry.id === id)?.keys ?? [];

/** Removes a table that was made here. */
export function removeTable({ id, keys }) {
  const seat = keys.findIndex(Boolean);
  const claim = seat < 0 ? {} : { seat, key: keys[seat] };
  return request("DELETE", withQuery(`/api/tables/${encodeURIComponent(id)}`, claim));
}

let info = null;

/** Games, networks and runs. Read once, and again with `fresh`. */
export function serverInfo({ fresh = false } = {}) {
  if (!info || fresh) {
    info = request("GET", "/api/info");
    info.catch(() => (info = null));
  }
  return info;
}

let newTable = null;

/** Makes a table and keeps its keys. */
export async function createTable(body) {
  const state = await request("POST", "/api/tables", body);
  keepKeys(state);
  newTable = state;
  return state;
}

/** The first state of a table that was made just now, else null: so networks are seen from their first move on. */
export function firstState(id) {
  const state = newTable?.id === id && !newTable.hidden_information ? newTable : null;
  newTable = null;
  return state;
}
