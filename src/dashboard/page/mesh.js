/** The peers in a ring, with a link in each direction between any two of them. */
import { attr, byId, setHue, text } from "./dom.js";
import { hueOfPeer } from "./peers-view.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, RADIUS, NODE] = [360, 310, 112, 25];
/** The two directions of a link, side by side. */
const ASIDE = 4.5;
/** A link is bright for so long after something was sent. */
const PULSE_MS = 350;
const ROUND = 1_000;

/**
 * @typedef {import("./peers-view.js").Peers} Peers
 * @typedef {import("./peers-view.js").Algorithm} Algorithm
 *
 * @typedef {object} Mark one peer
 * @property {SVGElement} group
 * @property {SVGElement} promise
 * @property {SVGElement} sign
 * @property {number | null} until when its promise, or its lease, ends
 *
 * @typedef {{ line: SVGElement, sent: number, brightUntil: number }} Way
 * @typedef {{ key: string, marks: Map<string, Mark>, ways: Map<string, Way> }} Mesh
 */

/** @type {Map<Algorithm, Mesh>} */
const meshes = new Map();

/**
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {...SVGElement} children
 */
function shape(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

/**
 * @param {Algorithm} algorithm
 * @param {Peers} all
 * @param {readonly string[]} leaders
 */
export function renderMesh(algorithm, all, leaders) {
  const mesh = meshOf(algorithm, all);
  for (const { from, to, cut, sent } of all.links) {
    const way = mesh.ways.get(`${from} ${to}`);
    if (way === undefined) continue;
    if (sent > way.sent) way.brightUntil = performance.now() + PULSE_MS;
    way.sent = sent;
    attr(way.line, "data-cut", cut ? "" : null);
  }
  for (const { name, state, roles } of all.peers) {
    const mark = mesh.marks.get(name);
    if (mark === undefined) continue;
    const leads = leaders.includes(name);
    attr(mark.group, "data-state", state);
    attr(mark.group, "data-leads", leads ? "" : null);
    attr(mark.group, "data-two", leads && leaders.length > 1 ? "" : null);
    attr(
      mark.sign,
      "href",
      state === "frozen" ? "#icon-frozen" : state === "dead" ? "#icon-gone" : leads ? "#icon-crown" : "",
    );
    const role = roles[algorithm];
    const promised = algorithm === "raft" ? (role?.ballot?.promised ?? null) : null;
    const until = algorithm === "raft" ? (promised?.until ?? null) : (role?.deadline ?? null);
    mark.until = state === "dead" ? null : until;
    setHue(mark.promise, hueOfPeer(promised?.to ?? name));
  }
}

/**
 * @param {Algorithm} algorithm
 * @param {number} now
 * @param {number} leaseMs the whole of a promise
 */
export function tickMesh(algorithm, now, leaseMs) {
  const mesh = meshes.get(algorithm);
  if (mesh === undefined) return;
  for (const { promise, until } of mesh.marks.values()) {
    const left = until === null ? 0 : Math.max(0, Math.min(1, (until - now) / leaseMs));
    attr(promise, "stroke-dasharray", `${Math.round(left * ROUND)} ${ROUND}`);
  }
  for (const { line, brightUntil } of mesh.ways.values())
    attr(line, "data-bright", performance.now() < brightUntil ? "" : null);
}

/**
 * Drawn anew when there are others.
 * @param {Algorithm} algorithm
 * @param {Peers} all
 * @returns {Mesh}
 */
function meshOf(algorithm, { peers, links }) {
  const names = peers.map(({ name }) => name);
  const known = meshes.get(algorithm);
  if (known?.key === names.join()) return known;
  const places = new Map(names.map((name, index) => [name, placeOf(index, names.length)]));
  /** @type {Mesh["ways"]} */
  const ways = new Map();
  for (const { from, to } of links) {
    const [a, b] = [places.get(from), places.get(to)];
    if (a === undefined || b === undefined) continue;
    ways.set(`${from} ${to}`, { line: wayBetween(a, b), sent: 0, brightUntil: 0 });
  }
  /** @type {Mesh["marks"]} */
  const marks = new Map(names.map((name) => [name, markOf(name, places.get(name) ?? { x: 0, y: 0 })]));
  const mesh = { key: names.join(), marks, ways };
  const groups = [...marks.values()].map(({ group }) => group);
  byId(`${algorithm}-mesh`).replaceChildren(...[...ways.values()].map(({ line }) => line), ...groups);
  meshes.set(algorithm, mesh);
  return mesh;
}

/**
 * @param {number} index
 * @param {number} count
 */
function placeOf(index, count) {
  const angle = (index / count) * 2 * Math.PI - Math.PI / 2;
  return { x: WIDTH / 2 + RADIUS * 1.15 * Math.cos(angle), y: HEIGHT / 2 + 6 + RADIUS * Math.sin(angle) };
}

/**
 * A line with a head, on the right of whoever sends.
 * @param {{ x: number, y: number }} a
 * @param {{ x: number, y: number }} b
 */
function wayBetween(a, b) {
  const length = Math.hypot(b.x - a.x, b.y - a.y);
  const [dx, dy] = [(b.x - a.x) / length, (b.y - a.y) / length];
  const at = (/** @type {number} */ along, /** @type {number} */ aside) =>
    `${(a.x + dx * along - dy * aside).toFixed(1)} ${(a.y + dy * along + dx * aside).toFixed(1)}`;
  const [first, last] = [NODE + 7, length - NODE - 7];
  const middle = (first + last) / 2;
  const head = `M${at(last - 7, ASIDE + 3.5)} L${at(last, ASIDE)}`;
  const cross = `M${at(middle - 5, ASIDE - 5)} L${at(middle + 5, ASIDE + 5)} M${at(middle - 5, ASIDE + 5)} L${at(middle + 5, ASIDE - 5)}`;
  return shape(
    "g",
    { class: "way" },
    shape("path", { class: "way-line", d: `M${at(first, ASIDE)} L${at(last, ASIDE)} ${head}` }),
    shape("path", { class: "way-cross", d: cross }),
  );
}

/**
 * @param {string} name
 * @param {{ x: number, y: number }} at
 * @returns {Mark}
 */
function markOf(name, { x, y }) {
  const promise = shape("circle", {
    class: "mark-promise",
    r: NODE + 4,
    pathLength: ROUND,
    "stroke-dasharray": `0 ${ROUND}`,
    transform: "rotate(-90)",
  });
  const sign = shape("use", { class: "mark-sign", x: -9, y: -NODE - 21, width: 18, height: 18 });
  const label = shape("text", { class: "mark-name", y: 5, "text-anchor": "middle" });
  text(label, name);
  const body = shape("circle", { class: "mark-body", r: NODE });
  const group = shape(
    "g",
    { class: "mark-peer", transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
    body,
    promise,
    sign,
    label,
  );
  setHue(group, hueOfPeer(name));
  return { group, promise, sign, until: null };
}
