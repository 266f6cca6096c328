/** The little that is needed to keep a document up to date. Text is only ever set as text. */

/**
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`no #${id} in the page`);
  return found;
}

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {string} [className]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {string} className
 * @returns {SVGSVGElement & { show(name: string): void }}
 */
export function icon(className) {
  const svg = document.createElementNS(SVG, "svg");
  const use = document.createElementNS(SVG, "use");
  svg.setAttribute("class", `icon ${className}`);
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return Object.assign(svg, { show: (/** @type {string} */ name) => attr(use, "href", `#icon-${name}`) });
}

/**
 * @param {Node} node
 * @param {string} value
 */
export function text(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

/**
 * @param {Element} node
 * @param {string} name
 * @param {string | null} value `null` removes it
 */
export function attr(node, name, value) {
  if (value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

/**
 * @param {HTMLElement | SVGElement} node
 * @param {number} hue
 */
export function setHue(node, hue) {
  node.style.setProperty("--hue", String(hue));
}

/**
 * A token, the digits that all tokens here share paler than the rest.
 * @param {HTMLElement} node
 * @param {string | null} token
 */
export function showToken(node, token) {
  if (node.dataset["token"] === (token ?? "")) return;
  node.dataset["token"] = token ?? "";
  if (token === null) return node.replaceChildren("–");
  const tail = token.length > LONG_TOKEN ? token.slice(-TAIL) : token;
  const whole = el("span", "token");
  if (tail !== token) whole.append(el("span", "common", token.slice(0, -TAIL)));
  whole.append(tail);
  node.replaceChildren(whole);
}

const LONG_TOKEN = 8;
const TAIL = 5;

/**
 * Where there is no room for all of it.
 * @param {string} token
 */
export function shortToken(token) {
  return token.length > LONG_TOKEN ? `…${token.slice(-TAIL)}` : token;
}

/**
 * Keeps the children of a parent equal to a list, each item with an element of its own.
 * @template T
 * @template {HTMLElement} E
 * @param {HTMLElement} parent
 * @param {Map<string, E>} kept
 * @param {readonly T[]} items
 * @param {(item: T) => string} key
 * @param {(item: T) => E} create
 * @param {(element: E, item: T) => void} update
 */
export function keyed(parent, kept, items, key, create, update) {
  const wanted = new Set(items.map(key));
  for (const [id, element] of kept) {
    if (wanted.has(id)) continue;
    element.remove();
    kept.delete(id);
  }
  items.forEach((item, index) => {
    const id = key(item);
    let element = kept.get(id);
    if (element === undefined) kept.set(id, (element = create(item)));
    update(element, item);
    if (parent.children[index] !== element) parent.insertBefore(element, parent.children[index] ?? null);
  });
}

/**
 * `3.1 s`, `480 ms`, `3.2 ms`
 * @param {number} ms
 */
export function duration(ms) {
  if (ms >= 99_500) return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`;
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  return ms >= 10 ? `${Math.round(ms)} ms` : `${Math.max(0, ms).toFixed(1)} ms`;
}
