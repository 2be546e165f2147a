// Elements of HTML and SVG, and lists that keep their elements when their items change.

const SVG = "http://www.w3.org/2000/svg";

/** Sets attributes; a function becomes a listener, `true` an empty attribute, and `null`, `undefined` or `false` no attribute at all. */
export function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value === null || value === undefined || value === false) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? "" : value);
  }
  return node;
}

function make(node, attributes, children) {
  setAttributes(node, attributes);
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** An HTML element. */
export const html = (name, attributes = {}, ...children) => make(document.createElement(name), attributes, children);

/** An SVG element. */
export const svg = (name, attributes = {}, ...children) =>
  make(document.createElementNS(SVG, name), attributes, children);

/** A button with a text; `title` tells its key, if it has one. */
export const button = (text, onclick, attributes = {}) =>
  html("button", { type: "button", onclick, ...attributes }, text);

/** Sets a text only if it differs, so that screen readers hear it once and selections stay. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Makes the children of `parent` those of `items`: elements whose key is still there are kept and updated, so that focus, hover and
 * scrolling stay as they are. Items may share a key, as equal cards of a hand do.
 */
export function reconcile(parent, items, keyOf, create, update = () => {}) {
  const old = new Map();
  for (const child of parent.children) old.set(child.dataset.key, [...(old.get(child.dataset.key) ?? []), child]);
  let next = parent.firstElementChild;
  for (const [index, item] of items.entries()) {
    const key = String(keyOf(item, index));
    let child = old.get(key)?.shift();
    if (!child) {
      child = create(item, index);
      child.dataset.key = key;
    }
    update(child, item, index);
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
  }
  for (const child of [...old.values()].flat()) child.remove();
}

/** True if the reader wants little motion. */
export const reducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
