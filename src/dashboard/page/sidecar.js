/**
 * A sidecar's events, as something to show: each election as this sidecar sees
 * it. Terms are known since the page was opened, the first one since it began.
 */
import { shortToken } from "./dom.js";
import { between, hueOfName, WINDOW_MS } from "./view.js";

/**
 * @typedef {object} WireState
 * @property {string} election
 * @property {string} backend
 * @property {string} candidate
 * @property {boolean} leading
 * @property {boolean} jeopardy
 * @property {{ candidate: string, token: string, value: string, since?: number } | null} leader
 * @property {boolean} [observer]
 * @property {readonly { candidate: string, priority: number, eligible: boolean }[]} [candidates]
 * @property {number} validForMs
 * @property {number} ttlMs
 *
 * @typedef {object} Seen
 * @property {number} at
 * @property {WireState | null} state
 * @property {boolean} [observer] nothing here can be changed
 * @property {import("./view.js").Span[]} spans
 */

const MOST_SPANS = 100;

export class SidecarModel {
  /** @type {Map<string, Seen>} */
  #elections = new Map();

  /**
   * @param {string} event
   * @param {{ at: number, election: string, state?: WireState | null, candidate?: string, token?: string, reason?: string }} data
   */
  take(event, data) {
    const seen = this.#elections.get(data.election) ?? { at: data.at, state: null, spans: [] };
    this.#elections.set(data.election, seen);
    if (event === "state") {
      seen.at = data.at;
      seen.state = data.state ?? null;
      seen.observer ||= data.state?.observer === true;
      this.#follow(seen, data.at);
    } else if (event === "elected" && data.token && data.candidate) {
      this.#begin(seen, data.token, data.candidate, data.at);
    } else if (event === "ended") {
      const span = seen.spans.find(({ token }) => token === data.token);
      if (span) Object.assign(span, { to: Math.min(data.at, span.to ?? data.at), reason: data.reason });
    }
  }

  /** @returns {import("./view.js").View} */
  view() {
    const all = [...this.#elections];
    const single = all.length === 1 ? all[0]?.[1] : undefined;
    const betweens = all.map(([name, { spans }]) => between(spans, name));
    return {
      subtitle: "the elections of this sidecar",
      noun: "Elections",
      count: String(all.length),
      rows: all.map(([name, seen]) => rowOf(name, seen)),
      lanes: all.map(([name]) => ({ id: name, hue: hueOfName(name) })),
      bars: all.flatMap(([name, seen]) => barsOf(name, seen)),
      gaps: betweens.flatMap(({ gaps }) => gaps),
      handovers: betweens.flatMap(({ handovers }) => handovers).slice(0, 6),
      leadership: single ? leadershipOf(single) : undefined,
      ttlMs: single?.state?.ttlMs ?? 0,
      storage: null,
      ops: null,
      scene: null,
      add: null,
    };
  }

  /**
   * @param {Seen} seen
   * @param {number} at
   */
  #follow(seen, at) {
    const { state, spans } = seen;
    if (state === null) return; // not known is not vacant
    const last = spans.at(-1);
    if (state.leader === null) {
      if (last && last.to === undefined) last.to = at;
      return;
    }
    const { candidate, token, since } = state.leader;
    const began = last === undefined && since !== undefined && since <= at ? since : at;
    this.#begin(seen, token, candidate, began);
    const current = spans.at(-1);
    if (current?.token === token) current.deadline = at + state.validForMs;
  }

  /**
   * @param {Seen} seen
   * @param {string} token
   * @param {string} candidate
   * @param {number} at
   */
  #begin({ spans }, token, candidate, at) {
    if (spans.some((span) => span.token === token)) return;
    const last = spans.at(-1);
    if (last && last.to === undefined) last.to = at;
    spans.push({ token, name: plain(candidate), from: at });
    if (spans.length > MOST_SPANS) spans.shift();
  }
}

/**
 * Without the random part that makes it unique.
 * @param {string} candidate
 */
function plain(candidate) {
  return candidate.replace(/-[0-9a-f]{16}$/, "");
}

/**
 * @param {string} name
 * @param {Seen} seen
 * @returns {import("./view.js").Row}
 */
function rowOf(name, { at, state, observer }) {
  const known = stateOf(state);
  const deadline = at + (state?.validForMs ?? 0);
  return {
    id: name,
    hue: hueOfName(name),
    state: known,
    text: wording(known, state),
    token: state?.leader?.token ?? null,
    cut: false,
    lease: state?.leader ? { deadline, end: deadline, span: state.ttlMs } : null,
    meta: metaOf(state),
    standing: standingOf(state),
    actions: observer
      ? []
      : [
          {
            id: "resign",
            label: "Resign",
            path: `/elections/${encodeURIComponent(name)}/resign`,
            refusal: state?.leading ? null : "this candidate does not lead",
          },
        ],
  };
}

/**
 * Those on the roster besides the leader: who waits, and who only observes.
 * @param {WireState | null} state
 */
function standingOf(state) {
  const others = (state?.candidates ?? []).filter(({ candidate }) => candidate !== state?.leader?.candidate);
  /** @param {{ candidate: string, priority: number }} standee */
  const name = ({ candidate, priority }) =>
    priority === 0 ? plain(candidate) : `${plain(candidate)} (priority ${priority})`;
  const waiting = others.filter(({ eligible }) => eligible).map(name);
  const observing = others.filter(({ eligible }) => !eligible).map(name);
  return [
    ...(waiting.length > 0 ? [`waiting: ${waiting.join(", ")}`] : []),
    ...(observing.length > 0 ? [`observing: ${observing.join(", ")}`] : []),
  ].join("; ");
}

/** @param {WireState | null} state */
function metaOf(state) {
  if (state === null) return [];
  return state.observer ? [state.backend] : [state.backend, `candidate ${plain(state.candidate)}`];
}

/**
 * @param {WireState | null} state
 * @returns {import("./view.js").State}
 */
function stateOf(state) {
  if (state === null) return "unknown";
  if (state.leading) return state.jeopardy ? "jeopardy" : "leader";
  return state.leader === null ? "vacant" : "follower";
}

/**
 * @param {import("./view.js").State} known
 * @param {WireState | null} state
 */
function wording(known, state) {
  switch (known) {
    case "leader":
      return "we lead";
    case "jeopardy":
      return "we lead, but cannot renew";
    case "follower":
      return `${plain(state?.leader?.candidate ?? "")} leads`;
    case "vacant":
      return "nobody leads";
    case "unknown":
    case "frozen":
    case "gone":
    case "starting":
      return "not known: the store does not answer";
  }
}

/**
 * @param {string} row
 * @param {Seen} seen
 * @returns {import("./view.js").Bar[]}
 */
function barsOf(row, { at, spans }) {
  return spans
    .filter(({ to }) => (to ?? at) > at - WINDOW_MS)
    .map(({ token, name, from, to, deadline }) => ({
      id: `${row}/${token}`,
      row,
      hue: hueOfName(name),
      label: `${name} ${shortToken(token)}`,
      from,
      to: to ?? null,
      cap: deadline ?? null,
      stoppedAt: null,
    }));
}

/**
 * @param {Seen} seen
 * @returns {import("./view.js").Leadership | null | undefined}
 */
function leadershipOf({ at, state, spans }) {
  if (state === null) return undefined;
  if (state.leader === null) return null;
  const { candidate, token } = state.leader;
  const deadline = at + state.validForMs;
  return {
    name: plain(candidate),
    state: state.jeopardy ? "jeopardy" : "leader",
    token,
    since: spans.at(-1)?.from ?? at,
    lease: { deadline, end: deadline, span: state.ttlMs },
  };
}
