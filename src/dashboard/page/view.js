/**
 * What the page shows, whoever feeds it. Times are epoch milliseconds of the server.
 *
 * @typedef {"leader" | "jeopardy" | "frozen" | "follower" | "starting" | "gone" | "vacant" | "unknown"} State
 *
 * @typedef {object} Lease
 * @property {number} deadline until when the holder may act
 * @property {number} end until when the others wait
 * @property {number} span the whole lease, for the length of the bar
 *
 * @typedef {object} Action
 * @property {string} id
 * @property {string} label
 * @property {string} path where it is posted
 * @property {string | null} refusal why it makes no sense now
 *
 * @typedef {object} Row
 * @property {string} id
 * @property {number} hue
 * @property {State} state
 * @property {string} text
 * @property {string | null} token
 * @property {boolean} cut
 * @property {Lease | null} lease
 * @property {readonly string[]} meta
 * @property {string} [standing] who stands, where that is known
 * @property {readonly Action[]} actions
 *
 * @typedef {object} Bar one term
 * @property {string} id
 * @property {string} row
 * @property {number} hue
 * @property {string} label
 * @property {number} from
 * @property {number | null} to `null` while it goes on
 * @property {number | null} cap it cannot go on beyond this
 * @property {number | null} stoppedAt
 *
 * @typedef {object} Gap nobody acted
 * @property {string} id
 * @property {string | null} row `null`: in all rows
 * @property {number} from
 * @property {number | null} to `null` while it goes on
 *
 * @typedef {object} Handover
 * @property {string} id
 * @property {string} from
 * @property {string} to
 * @property {string} how
 * @property {string} token
 * @property {number} ms
 *
 * @typedef {object} Leadership
 * @property {string} name
 * @property {State} state
 * @property {string} token
 * @property {number} since
 * @property {Lease} lease
 *
 * @typedef {object} Write
 * @property {string} id
 * @property {string} node
 * @property {number} hue
 * @property {string} token
 * @property {string} highest
 * @property {boolean} accepted
 *
 * @typedef {object} Storage
 * @property {string | null} highest
 * @property {number} accepted
 * @property {number} refused
 * @property {readonly Write[]} writes newest first
 * @property {readonly Write[]} refusals newest first
 *
 * @typedef {object} View
 * @property {string} subtitle
 * @property {string} noun what the cards are
 * @property {string} count
 * @property {readonly Row[]} rows
 * @property {readonly { id: string, hue: number }[]} lanes
 * @property {readonly Bar[]} bars
 * @property {readonly Gap[]} gaps
 * @property {readonly Handover[]} handovers newest first
 * @property {Leadership | null | undefined} leadership `null`: nobody leads, `undefined`: several elections
 * @property {number} ttlMs
 * @property {Storage | null} storage
 * @property {number | null} ops
 * @property {{ title: string, lookFor: readonly string[], onPage?: readonly string[] } | null} scene
 * @property {Action | null} add
 */

/** Longest stretch of time that is shown. */
export const WINDOW_MS = 60_000;

/** From green over blue to pink: gold is left to the leader, red to what goes wrong. */
const HUES = { from: 105, range: 235 };
const GOLDEN_RATIO = 0.618034;

/**
 * Neighbours are far apart on the wheel.
 * @param {number} index
 */
export function hueOf(index) {
  return Math.round(HUES.from + ((0.38 + index * GOLDEN_RATIO) % 1) * HUES.range);
}

/**
 * The same name, the same colour.
 * @param {string} name
 */
export function hueOfName(name) {
  let sum = 0;
  for (const char of name) sum = (sum * 31 + (char.codePointAt(0) ?? 0)) % 997;
  return hueOf(sum);
}

/**
 * @typedef {object} Span one term, as far as it is known
 * @property {string} token
 * @property {string} name
 * @property {number} from
 * @property {number} [to]
 * @property {number} [deadline]
 * @property {number} [stoppedAt]
 * @property {string} [reason]
 */

/**
 * The stretches between terms, and what can be said of each handover.
 * @param {readonly Span[]} spans in order
 * @param {string | null} row
 * @returns {{ gaps: Gap[], handovers: Handover[] }}
 */
export function between(spans, row) {
  /** @type {Gap[]} */
  const gaps = [];
  /** @type {Handover[]} */
  const handovers = [];
  spans.forEach((span, index) => {
    const end = span.stoppedAt ?? span.to;
    if (end === undefined) return; // still acting, or its end has not been heard of yet
    const next = spans[index + 1];
    gaps.push({
      id: `${row ?? ""}/${span.token}`,
      row,
      from: end,
      to: next ? Math.max(end, next.from) : null,
    });
    if (next === undefined) return;
    handovers.unshift({
      id: `${row ?? ""}/${next.token}`,
      from: span.name,
      to: next.name,
      how: manner(span),
      token: next.token,
      ms: Math.max(0, next.from - end),
    });
  });
  return { gaps, handovers };
}

/** @param {Span} span */
function manner({ reason, stoppedAt }) {
  if (reason === "killed") return "killed";
  if (stoppedAt !== undefined) return "frozen";
  if (reason === "resigned" || reason === "closed") return "given up";
  if (reason === "expired") return "lease ran out";
  return reason ?? "";
}
