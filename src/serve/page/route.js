// Addresses: `#/table/ID?ply=12` is the screen "table" with an identifier and parameters.

/** A part of an address in plain text; one that is no encoding is what it is. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The route of an address's hash. */
export function parseRoute(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [screen = "", id = ""] = path.split("/").map(decoded);
  return { screen: screen || "play", id, parameters: new URLSearchParams(query) };
}

/** The hash of a route. */
export function hashOf(screen, id = "", parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const path = id ? `${screen}/${encodeURIComponent(id)}` : screen;
  const text = query.toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}

/** The hash that makes a position anew, on a table of its own: its game, options, pieces that were set up, and moves. */
export function positionHash({ game, options, history, placed }, ply) {
  const actions = history.slice(0, ply).map(({ action }) => action);
  return hashOf("position", "", {
    game,
    options: JSON.stringify(options),
    placed: placed ? JSON.stringify(placed) : null,
    actions: actions.join(" "),
  });
}

/** Goes to another screen; the back button leads back. */
export function go(screen, id, parameters) {
  location.hash = hashOf(screen, id, parameters);
}

/** Notes a change within a screen in the address without a step of history. */
export function note(screen, id, parameters) {
  history.replaceState(null, "", hashOf(screen, id, parameters));
}
