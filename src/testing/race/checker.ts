/**
 * The independent judge of a run's history. It knows nothing of the library: it
 * reads what candidates, the resource and the nemesis wrote, and uses only what
 * is certain. In [lo, hi] of a term (from the *end* of its first true answer to
 * the *start* of its last) the candidate claimed leadership without any doubt about
 * timing; everything else is never used against it.
 */
import { HarnessError, readHistory } from "./history.js";
import type { Line } from "./history.js";
import {
  claimsOf,
  compare,
  eventOrder,
  groupBy,
  isCandidate,
  liveness,
  max,
  min,
  ms,
  overlaps,
  staleWrites,
  tokenOrder,
  tokensShared,
  trueAgain,
} from "./rules.js";
import type { Claim, Violation } from "./rules.js";

/** A run that tested nothing must not be green. */
export interface Demands {
  /** Answers "yes" that were written down. */
  readonly observations: number;
  /** Terms that followed another. */
  readonly changes: number;
  /** Faults that hit a leader, by kind. */
  readonly faults: Readonly<Record<string, number>>;
}

export interface Metrics {
  readonly elections: number;
  readonly terms: number;
  readonly changes: number;
  readonly observations: number;
  /** Faults that hit a leader, by kind. */
  readonly hits: Readonly<Record<string, number>>;
  readonly accepted: number;
  readonly rejected: number;
  /** From the fault to the successor's first certain instant, in milliseconds, sorted. */
  readonly failoverMs: readonly number[];
}

export interface HistoryCheck {
  readonly violations: readonly Violation[];
  readonly inconclusive: readonly string[];
  readonly metrics: Metrics;
}

export const LEAST: Demands = { observations: 50, changes: 1, faults: {} };

export function checkHistory(history: readonly Line[], demands: Demands = LEAST): HistoryCheck {
  const claims = claimsOf(history);
  const violations: Violation[] = [];
  for (const [el, own] of groupBy(claims, (claim) => claim.el)) {
    violations.push(...overlaps(el, own), ...tokenOrder(el, own));
  }
  for (const [el, lines] of groupBy(history, (line) => line.el)) {
    if (el === undefined) continue;
    violations.push(...tokensShared(el, lines), ...staleWrites(el, lines));
    violations.push(...liveness(el, lines));
    for (const [, own] of groupBy(
      lines.filter((line) => isCandidate(line)),
      (line) => line.inc,
    )) {
      violations.push(...eventOrder(el, own), ...trueAgain(el, own));
    }
  }
  const metrics = measure(history, claims);
  return { violations, inconclusive: shortOf(metrics, demands), metrics };
}

function measure(history: readonly Line[], claims: readonly Claim[]): Metrics {
  const byElection = groupBy(claims, (claim) => claim.el);
  const hits: Record<string, number> = {};
  const failoverMs: number[] = [];
  const denials = groupBy(
    history.filter(({ ev }) => ev === "not-held"),
    ({ el }) => el,
  );
  for (const fault of history) {
    if (fault.ev !== "fault") continue;
    const own = byElection.get(fault.el) ?? [];
    const victim = victimOf(fault, own, denials.get(fault.el) ?? []);
    if (victim === undefined) continue;
    hits[fault.kind] = (hits[fault.kind] ?? 0) + 1;
    const next = own.filter(({ token }) => token > victim.token).map(({ lo }) => lo);
    if (next.length > 0) failoverMs.push(ms(next.reduce(min) - fault.t0));
  }
  return {
    elections: byElection.size,
    terms: claims.length,
    changes: claims.length - byElection.size,
    observations: claims.reduce((sum, claim) => sum + claim.observations, 0),
    hits,
    accepted: history.filter(({ ev }) => ev === "acc").length,
    rejected: history.filter(({ ev }) => ev === "rej").length,
    failoverMs: failoverMs.toSorted((a, b) => a - b),
  };
}

/** What a kill left unwritten, and what a busy machine did not ask: at most this much of the end of a term is not known. */
const FRESH_NS = 1_000_000_000n;

/** The leader that a fault hit: it had the newest token, had just said "yes" and had not yet been told "no". */
function victimOf(fault: Line, claims: readonly Claim[], denials: readonly Line[]): Claim | undefined {
  const begun = claims.filter(({ lo }) => lo <= fault.t0);
  const newest = begun.toSorted((a, b) => compare(a.token, b.token)).at(-1);
  if (newest === undefined || newest.inc !== fault.inc) return undefined;
  const over = denials.some(
    ({ inc, token, from }) => inc === fault.inc && token === newest.token && from < fault.t0,
  );
  const last = newest.spans.filter(({ from }) => from <= fault.t0).map(({ from, to }) => max(from, to));
  return !over && last.some((at) => at >= fault.t0 - FRESH_NS) ? newest : undefined;
}

function shortOf({ observations, changes, hits }: Metrics, demands: Demands): string[] {
  const short: string[] = [];
  if (observations < demands.observations)
    short.push(`${observations} observations of a leader, at least ${demands.observations} are needed`);
  if (changes < demands.changes)
    short.push(`${changes} changes of leadership, at least ${demands.changes} are needed`);
  for (const [kind, least] of Object.entries(demands.faults)) {
    const hit = hits[kind] ?? 0;
    if (hit < least) short.push(`${hit} faults of kind "${kind}" hit a leader, at least ${least} are needed`);
  }
  return short;
}

function report({ violations, inconclusive, metrics }: HistoryCheck): string {
  const { failoverMs, hits } = metrics;
  const at = (share: number): string =>
    `${Math.round(failoverMs[Math.floor(share * (failoverMs.length - 1))] ?? NaN)} ms`;
  const faults = Object.entries(hits).map(([kind, count]) => `${count} x ${kind}`);
  return [
    ...violations.slice(0, 20).map(({ rule, el, detail }) => `${rule} in ${el}: ${detail}`),
    ...inconclusive.map((reason) => `INCONCLUSIVE: ${reason}`),
    `${metrics.elections} elections, ${metrics.terms} terms, ${metrics.observations} observations of a leader; ` +
      `leader hit: ${faults.join(", ") || "never"}; failover median ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)}`,
    `writes: ${metrics.accepted} accepted, ${metrics.rejected} refused as stale; ${violations.length} violations`,
  ].join("\n");
}

/** What the judge says of a directory of history files. */
export interface Judgement {
  /** `inconclusive`: no rule was broken, but too little happened to say anything. `broken`: the history cannot be read. */
  readonly verdict: "good" | "violations" | "inconclusive" | "broken";
  /** For people: the violations, or what was counted. */
  readonly text: string;
}

/** Judges all files that end in `.jsonl` in a directory. */
export function judgeDirectory(directory: string, demands: Demands = LEAST): Judgement {
  try {
    const found = checkHistory(readHistory(directory), demands);
    const verdict =
      found.violations.length > 0 ? "violations" : found.inconclusive.length > 0 ? "inconclusive" : "good";
    return { verdict, text: report(found) };
  } catch (error) {
    if (!(error instanceof HarnessError) && !(error instanceof SyntaxError)) throw error;
    return { verdict: "broken", text: `broken history: ${error.message}` };
  }
}
