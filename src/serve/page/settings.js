// What this browser remembers: theme, keys of seats, last choices.

const fallback = new Map();

/** A setting, or null. */
export function readSetting(name) {
  try {
    return JSON.parse(localStorage.getItem(`vecaz.${name}`));
  } catch {
    return fallback.get(name) ?? null;
  }
}

/** Keeps a setting; in a browser that stores nothing until the page is left. */
export function writeSetting(name, value) {
  fallback.set(name, value);
  try {
    localStorage.setItem(`vecaz.${name}`, JSON.stringify(value));
  } catch {
    // Kept above.
  }
}
