/**
 * The demo's snapshots, as something to show. The server sends all of it each
 * time, so there is nothing to keep in step here.
 */
import { shortToken } from "./dom.js";
import { between, hueOf, WINDOW_MS } from "./view.js";

/**
 * @typedef {object} Node
 * @property {string} name
 * @property {"starting" | "follower" | "leader" | "frozen" | "gone"} state
 * @property {number} [pid]
 * @property {string} [token]
 * @property {boolean} jeopardy
 * @property {boolean} cut
 * @property {number} opsPerSecond
 *
 * @typedef {object} Term
 * @property {string} node
 * @property {string} token
 * @property {number} from
 * @property {number} [to]
 * @property {number} [deadline]
 * @property {number} [leaseEnd]
 * @property {number} [stoppedAt]
 * @property {string} [reason]
 *
 * @typedef {{ at: number, node: string, token: string, accepted: boolean, highest: string }} Write
 *
 * @typedef {object} Snapshot
 * @property {number} at
 * @property {number} ttlMs
 * @property {number} mostNodes
 * @property {{ nodes: Node[], terms: Term[], accepted: number, refused: number, highest?: string,
 *   writes: Write[], refusals: Write[], scene?: { title: string, lookFor: string[], onPage?: string[] } }} state
 */

/**
 * @param {Snapshot} snapshot
 * @returns {import("./view.js").View}
 */
export function demoView({ at, ttlMs, mostNodes, state }) {
  const { nodes, scene } = state;
  const terms = [...state.terms].sort((a, b) => a.from - b.from);
  const last = terms.at(-1);
  const current = last !== undefined && last.to === undefined ? last : undefined;
  const recent = terms.filter((term) => (term.to ?? at) > at - WINDOW_MS);
  const spans = terms.map((term) => ({ ...term, name: term.node }));
  const { gaps, handovers } = between(spans, null);
  const names = new Set([...nodes.map(({ name }) => name), ...recent.map(({ node }) => node)]);
  const lanes = [...names].sort((a, b) => numberOf(a) - numberOf(b));
  return {
    subtitle: "live demo: real processes, one leader",
    noun: "Candidates",
    count: `${nodes.length} of at most ${mostNodes}`,
    rows: nodes.map((node) => rowOf(node, current, ttlMs, nodes.length)),
    lanes: lanes.map((name) => ({ id: name, hue: hueOfNode(name) })),
    bars: recent.map(barOf),
    gaps: gaps.filter(({ to }) => (to ?? at) > at - WINDOW_MS),
    handovers: handovers.slice(0, 6),
    leadership: leadershipOf(current, nodes, ttlMs),
    ttlMs,
    storage: {
      highest: state.highest ?? null,
      accepted: state.accepted,
      refused: state.refused,
      writes: state.writes.map(writeOf).reverse(),
      refusals: state.refusals.map(writeOf).reverse().slice(0, 2),
    },
    ops: nodes.reduce((sum, { opsPerSecond }) => sum + opsPerSecond, 0),
    scene: scene ?? null,
    add: {
      id: "add",
      label: "Add a node",
      path: "/nodes",
      refusal: nodes.length >= mostNodes ? `at most ${mostNodes} nodes` : null,
    },
  };
}

/** @param {string} name */
function numberOf(name) {
  return Number(/\d+$/.exec(name)?.[0] ?? 0);
}

/** @param {string} name */
function hueOfNode(name) {
  return hueOf(numberOf(name) - 1);
}

/**
 * @param {Node} node
 * @param {Term | undefined} current
 * @param {number} ttlMs
 * @param {number} count
 * @returns {import("./view.js").Row}
 */
function rowOf(node, current, ttlMs, count) {
  const term = current?.node === node.name ? current : undefined;
  const state = stateOf(node);
  return {
    id: node.name,
    hue: hueOfNode(node.name),
    state,
    text: wording(node, state, term, current),
    token: (term && node.token) ?? null,
    cut: node.cut,
    lease: term ? leaseOf(term, ttlMs) : null,
    meta: node.pid === undefined ? [] : [`process ${node.pid}`, `${node.opsPerSecond} ops/s`],
    actions: actionsOf(node, state, count),
  };
}

/**
 * @param {Node} node
 * @returns {import("./view.js").State}
 */
function stateOf(node) {
  return node.state === "leader" && node.jeopardy ? "jeopardy" : node.state;
}

/**
 * @param {Node} node
 * @param {import("./view.js").State} state
 * @param {Term | undefined} term its own
 * @param {Term | undefined} current
 */
function wording(node, state, term, current) {
  switch (state) {
    case "leader":
      return "leads";
    case "jeopardy":
      return "leads, but cannot renew";
    case "frozen":
      return term ? "frozen while leading" : "frozen";
    case "gone":
      return "dead";
    case "starting":
      return "starting";
    case "follower":
    case "vacant":
    case "unknown":
      if (node.cut) return "cannot reach the store";
      return current && current.node !== node.name ? `follows ${current.node}` : "campaigns";
  }
}

/**
 * @param {Node} node
 * @param {import("./view.js").State} state
 * @param {number} count
 * @returns {import("./view.js").Action[]}
 */
function actionsOf(node, state, count) {
  const path = (/** @type {string} */ action) => `/nodes/${encodeURIComponent(node.name)}/${action}`;
  const frozen = state === "frozen";
  const gone = state === "gone";
  const act = (
    /** @type {string} */ id,
    /** @type {string} */ label,
    /** @type {string} */ action,
    /** @type {string | null} */ refusal,
  ) => ({ id, label, path: path(action), refusal });
  const dead = gone ? "it is dead" : null;
  const leads = state === "leader" || state === "jeopardy";
  return [
    act("resign", "Resign", "resign", leads ? null : "it does not lead"),
    frozen ? act("freeze", "Thaw", "thaw", null) : act("freeze", "Freeze", "freeze", dead),
    node.cut ? act("cut", "Heal", "heal", null) : act("cut", "Cut off", "cut", dead),
    gone ? act("kill", "Start", "start", null) : act("kill", "Kill", "kill", null),
    act("remove", "Remove", "remove", count > 1 ? null : "the last node stays"),
  ];
}

/**
 * @param {Term} term
 * @param {number} ttlMs
 * @returns {import("./view.js").Lease}
 */
function leaseOf(term, ttlMs) {
  // Before the first word of the holder: about what it will be.
  const deadline = term.deadline ?? term.from + 0.85 * ttlMs;
  return { deadline, end: term.leaseEnd ?? term.from + ttlMs, span: ttlMs };
}

/**
 * @param {Term | undefined} current
 * @param {readonly Node[]} nodes
 * @param {number} ttlMs
 * @returns {import("./view.js").Leadership | null}
 */
function leadershipOf(current, nodes, ttlMs) {
  if (current === undefined) return null;
  const node = nodes.find(({ name }) => name === current.node);
  const state = node && (node.state === "leader" || node.state === "frozen") ? stateOf(node) : "leader";
  return {
    name: current.node,
    state,
    token: current.token,
    since: current.from,
    lease: leaseOf(current, ttlMs),
  };
}

/**
 * @param {Term} term
 * @returns {import("./view.js").Bar}
 */
function barOf({ token, node, from, to, deadline, stoppedAt }) {
  return {
    id: token,
    row: node,
    hue: hueOfNode(node),
    label: shortToken(token),
    from,
    to: to ?? null,
    cap: deadline ?? null,
    stoppedAt: stoppedAt ?? null,
  };
}

/**
 * @param {Write} write
 * @returns {import("./view.js").Write}
 */
function writeOf({ at, node, token, highest, accepted }) {
  return { id: `${at}/${node}/${token}/${accepted}`, node, hue: hueOfNode(node), token, highest, accepted };
}
