/** The rules of the checker, each by itself. No import from the library. */
import type { Line } from "./history.js";

export interface Violation {
  readonly rule:
    | "OVERLAP"
    | "OVERLAP_POINT"
    | "TOKEN_SHARED"
    | "TOKEN_NOT_INCREASING"
    | "STALE_WRITE_ACCEPTED"
    | "LOST_UPDATE"
    | "TRUE_AFTER_STOPPED"
    | "TRUE_AFTER_FALSE"
    | "RELEAD_SAME_TOKEN"
    | "EVENT_ORDER"
    | "LIVENESS";
  readonly el: string;
  readonly detail: string;
}

/** One leadership of one process, by what it certainly said. */
export interface Claim {
  readonly el: string;
  readonly inc: string;
  readonly token: bigint;
  /** End of the first true answer; start of the last. `lo > hi`: a single answer. */
  lo: bigint;
  hi: bigint;
  observations: number;
  readonly spans: Line[];
}

export function claimsOf(history: readonly Line[]): Claim[] {
  const claims = new Map<string, Claim>();
  const counted = new Map<string, number>();
  for (const line of history) {
    if (line.ev !== "span") continue;
    const { el, inc, token, from, to, n } = line;
    const key = `${el}\n${inc}\n${token}`;
    const claim = claims.get(key) ?? { el, inc, token, lo: from, hi: to, observations: 0, spans: [] };
    claims.set(key, claim);
    if (from < claim.lo) claim.lo = from;
    if (to > claim.hi) claim.hi = to;
    claim.spans.push(line);
    // A span is written again as it grows: the same beginning is the same span.
    const span = `${key}\n${from}`;
    claim.observations += n - (counted.get(span) ?? 0);
    counted.set(span, n);
  }
  return [...claims.values()];
}

/** R1, R2. Same process, other token: also two claims at once, and as bad. */
export function overlaps(el: string, claims: readonly Claim[]): Violation[] {
  const found: Violation[] = [];
  for (const [index, a] of claims.entries()) {
    for (const b of claims.slice(index + 1)) {
      if (a.inc === b.inc) continue;
      const [older, newer] = a.token < b.token ? [a, b] : [b, a];
      const who = `${older.inc} (token ${older.token}) and ${newer.inc} (token ${newer.token})`;
      if (isInterval(a) && isInterval(b)) {
        const from = max(a.lo, b.lo);
        const to = min(a.hi, b.hi);
        if (to > from) {
          const detail = `${who} both held for ${ms(to - from)} ms; the older one said yes ${staleAnswers(older, newer)} after the newer began`;
          found.push({ rule: "OVERLAP", el, detail });
        }
      } else {
        const [point, interval] = isInterval(a) ? [b, a] : [a, b];
        if (isInterval(interval) && interval.lo < point.hi && point.lo < interval.hi)
          found.push({ rule: "OVERLAP_POINT", el, detail: `${who}: one answer inside the other's term` });
      }
    }
  }
  return found;
}

/** The running part of an overlap: the raw intersection contains the time the process was stopped. */
function staleAnswers(older: Claim, newer: Claim): string {
  const stale = older.spans.filter((span) => span.to > newer.lo);
  const from = stale.reduce((first, span) => min(first, max(span.from, newer.lo)), older.hi);
  return `within ${ms(older.hi - from)} ms`;
}

function isInterval(claim: Claim): boolean {
  return claim.hi > claim.lo;
}

/** R4: whoever certainly came later has the higher token. */
export function tokenOrder(el: string, claims: readonly Claim[]): Violation[] {
  const found: Violation[] = [];
  const sorted = claims.toSorted((a, b) => compare(a.lo, b.lo));
  let highest: Claim | undefined;
  // Ends of earlier claims, so that "ended before it began" is certain.
  const ended = claims.toSorted((a, b) => compare(lastOf(a), lastOf(b)));
  let next = 0;
  for (const claim of sorted) {
    while (next < ended.length && lastOf(ended[next]!) < firstOf(claim)) {
      const candidate = ended[next++]!;
      if (highest === undefined || candidate.token > highest.token) highest = candidate;
    }
    if (highest !== undefined && highest !== claim && highest.token >= claim.token) {
      const detail = `token ${claim.token} (${claim.inc}) came after ${highest.token} (${highest.inc})`;
      found.push({ rule: "TOKEN_NOT_INCREASING", el, detail });
    }
  }
  return found;
}

/** Of a single answer, `hi` is its question and `lo` its answer. */
function firstOf(claim: Claim): bigint {
  return min(claim.lo, claim.hi);
}

function lastOf(claim: Claim): bigint {
  return max(claim.lo, claim.hi);
}

/** R3 */
export function tokensShared(el: string, lines: readonly Line[]): Violation[] {
  const owners = new Map<bigint, string>();
  const found = new Map<bigint, Violation>();
  for (const { token, inc } of lines) {
    if (token === undefined || inc === undefined) continue;
    const owner = owners.get(token);
    if (owner === undefined) owners.set(token, inc);
    else if (owner !== inc)
      found.set(token, {
        rule: "TOKEN_SHARED",
        el,
        detail: `token ${token} was used by ${owner} and ${inc}`,
      });
  }
  return [...found.values()];
}

/** R5, and the lost update that a fence is there to prevent: every accepted write adds one. */
export function staleWrites(el: string, lines: readonly Line[]): Violation[] {
  const found: Violation[] = [];
  let highest = -1n;
  let value = 0;
  for (const line of lines) {
    if (line.ev !== "acc") continue;
    if (line.token < highest) {
      const detail = `a write of ${line.inc} with token ${line.token} was accepted after ${highest}`;
      found.push({ rule: "STALE_WRITE_ACCEPTED", el, detail });
    }
    if (line.value !== value + 1) {
      const detail = `${line.inc} wrote ${line.value} over ${value}: it had read something older`;
      found.push({ rule: "LOST_UPDATE", el, detail });
    }
    highest = max(highest, line.token);
    value = line.value;
  }
  return found;
}

export function isCandidate({ ev }: Line): boolean {
  return ["hello", "leading", "span", "not-held", "stopped", "bye"].includes(ev);
}

/** R6: who was told "no", or that the term has ended, is never told "yes" again for that term. */
export function trueAgain(el: string, own: readonly Line[]): Violation[] {
  const found: Violation[] = [];
  const stopped = new Map<bigint, bigint>();
  const denied = new Map<bigint, bigint>();
  for (const { ev, token, t, to } of own) {
    if (ev === "stopped") stopped.set(token, t);
    if (ev === "not-held") denied.set(token, min(denied.get(token) ?? to, to));
  }
  for (const { ev, inc, token, to } of own) {
    if (ev !== "span") continue;
    const end = stopped.get(token);
    const no = denied.get(token);
    if (end !== undefined && to > end)
      found.push({
        rule: "TRUE_AFTER_STOPPED",
        el,
        detail: `${inc} held token ${token} ${ms(to - end)} ms after its end was reported`,
      });
    if (no !== undefined && to > no)
      found.push({
        rule: "TRUE_AFTER_FALSE",
        el,
        detail: `${inc} held token ${token} again ${ms(to - no)} ms after it did not`,
      });
  }
  return found;
}

/** R6, R7: begins and ends alternate, each token begins once, and nothing comes after `bye`. */
export function eventOrder(el: string, own: readonly Line[]): Violation[] {
  const found: Violation[] = [];
  const began = new Set<bigint>();
  const ended = new Set<bigint>();
  let open: bigint | undefined;
  let bye = false;
  const wrong = (detail: string): void => void found.push({ rule: "EVENT_ORDER", el, detail });
  for (const { ev, inc, token } of own) {
    if (bye) wrong(`${inc}: ${ev} after it was closed`);
    if (ev === "bye") {
      bye = true;
      if (open !== undefined) wrong(`${inc} was closed, but the end of token ${open} was not reported`);
    }
    if (ev === "leading") {
      if (began.has(token))
        found.push({ rule: "RELEAD_SAME_TOKEN", el, detail: `${inc} began token ${token} twice` });
      if (open !== undefined) wrong(`${inc} began token ${token} before ${open} had ended`);
      began.add(token);
      open = token;
    }
    if (ev === "stopped") {
      // A term may end before its work began: then it was never `leading`.
      if (ended.has(token) || (open !== undefined && open !== token))
        wrong(`${inc}: the end of token ${token} was reported, which was not open`);
      ended.add(token);
      open = undefined;
    }
    if ((ev === "span" || ev === "not-held") && !began.has(token))
      wrong(`${inc} was asked about token ${token} before it began`);
  }
  return found;
}

/** R8 */
export function liveness(el: string, lines: readonly Line[]): Violation[] {
  const spans = lines.filter(({ ev }) => ev === "span");
  return lines.flatMap((line): Violation[] => {
    if (line.ev !== "heal") return [];
    const until = line.t + BigInt(Math.round(line.boundMs * 1e6));
    if (spans.some(({ from, to }) => max(from, to) > line.t && min(from, to) <= until)) return [];
    return [{ rule: "LIVENESS", el, detail: `nobody led within ${line.boundMs} ms after a fault was over` }];
  });
}

export function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

export function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

export function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

export function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function ms(ns: bigint): number {
  return Number(ns / 1000n) / 1000;
}
