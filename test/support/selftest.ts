/**
 * Judges the checkHistory: histories with one fault each, all of which it must find,
 * and legal ones, of which it must find none.
 */
import type { HistoryCheck } from "../../src/testing/race/checker.js";
import type { Line } from "../../src/testing/race/history.js";
import { parseLine } from "../../src/testing/race/history.js";
import type { Violation } from "../../src/testing/race/rules.js";

type Checker = (history: readonly Line[]) => HistoryCheck;
/** Instants are written in milliseconds. */
type Raw = Record<string, string | number>;

const ns = (ms: number): string => String(Math.round(ms * 1_000_000));

function line(ev: string, fields: Raw, el = "e"): Line {
  return parseLine(JSON.stringify({ ev, el, ...fields }));
}

/** A term as a good candidate writes it: begun at `from`, asked every 2 ms up to `to`, ended. */
function term(inc: string, token: number, from: number, to: number, el = "e"): Line[] {
  const n = Math.max(2, Math.floor((to - from) / 2));
  return [
    line("leading", { inc, token: `${token}`, t: ns(from) }, el),
    line("span", { inc, token: `${token}`, from: ns(from), to: ns(to), n }, el),
    line("not-held", { inc, token: `${token}`, from: ns(to + 1), to: ns(to + 1.1) }, el),
    line("stopped", { inc, token: `${token}`, why: "resigned", t: ns(to + 1.2) }, el),
  ];
}

/** One answer "yes", asked at `from` and given at `to`. */
function answer(inc: string, token: number, from: number, to: number): Line {
  return line("span", { inc, token: `${token}`, from: ns(to), to: ns(from), n: 1 });
}

function write(ev: "acc" | "rej", inc: string, token: number, max: number, value: number): Line {
  return line(ev, { inc, token: `${token}`, max: `${max}`, value });
}

const leading = (inc: string, token: number, at: number): Line =>
  line("leading", { inc, token: `${token}`, t: ns(at) });
const heal = (at: number, boundMs: number): Line => line("heal", { t: ns(at), boundMs });

const good = [...term("a", 1, 0, 1000), ...term("b", 2, 1500, 2500)];

/** Each breaks one rule; the rest of it is legal. */
const BAD: readonly (readonly [what: string, rule: Violation["rule"], history: readonly Line[]])[] = [
  ["two terms side by side", "OVERLAP", [...term("a", 1, 0, 1000), ...term("b", 2, 500, 1500)]],
  [
    "two terms that touch for a microsecond",
    "OVERLAP",
    [...term("a", 1, 0, 1000), ...term("b", 2, 999.999, 1500)],
  ],
  ["one term inside another", "OVERLAP", [...term("a", 1, 0, 1000), ...term("b", 2, 400, 500)]],
  [
    "the older token began later and overlaps",
    "OVERLAP",
    [...term("a", 2, 0, 1000), ...term("b", 1, 500, 1500)],
  ],
  [
    "the old leader says yes after a pause",
    "OVERLAP",
    [
      leading("a", 1, 0),
      line("span", { inc: "a", token: "1", from: ns(0), to: ns(100), n: 50 }),
      ...term("b", 2, 1500, 2500),
      answer("a", 1, 1700, 1700.01),
    ],
  ],
  [
    "a single stale yes of a term with no other",
    "OVERLAP_POINT",
    [...term("b", 2, 0, 1000), leading("a", 3, 490), answer("a", 3, 500, 500.01)],
  ],
  [
    "three terms, the first and the last overlap",
    "OVERLAP",
    [...term("a", 1, 0, 3000), ...term("b", 2, 4000, 5000), ...term("c", 3, 2999, 3500)],
  ],
  ["one token, two leaders", "TOKEN_SHARED", [...term("a", 1, 0, 1000), ...term("b", 1, 1500, 2500)]],
  ["a token written by another process", "TOKEN_SHARED", [...good, write("acc", "b", 1, -1, 1)]],
  ["a token that goes back", "TOKEN_NOT_INCREASING", [...term("a", 7, 0, 1000), ...term("b", 6, 1500, 2500)]],
  [
    "a token that goes back two terms later",
    "TOKEN_NOT_INCREASING",
    [...term("a", 5, 0, 1000), ...term("b", 9, 1500, 2500), ...term("c", 7, 3000, 4000)],
  ],
  [
    "the same candidate with a lower token",
    "TOKEN_NOT_INCREASING",
    [...term("a", 5, 0, 1000), ...term("a", 4, 1500, 2500)],
  ],
  [
    "a stale write that was accepted",
    "STALE_WRITE_ACCEPTED",
    [...good, write("acc", "b", 2, -1, 1), write("acc", "a", 1, 2, 2)],
  ],
  [
    "an update that was lost",
    "LOST_UPDATE",
    [...good, write("acc", "a", 1, -1, 1), write("acc", "b", 2, 1, 1)],
  ],
  [
    "a write that skipped one",
    "LOST_UPDATE",
    [...good, write("acc", "a", 1, -1, 1), write("acc", "b", 2, 1, 3)],
  ],
  ["held after its end was reported", "TRUE_AFTER_STOPPED", [...good, answer("b", 2, 2600, 2600.01)]],
  [
    "held again after it was not",
    "TRUE_AFTER_FALSE",
    [
      leading("a", 1, 0),
      answer("a", 1, 1, 1.1),
      line("not-held", { inc: "a", token: "1", from: ns(2), to: ns(2.1) }),
      answer("a", 1, 3, 3.1),
    ],
  ],
  ["a token begun twice", "RELEAD_SAME_TOKEN", [...term("a", 1, 0, 1000), leading("a", 1, 1100)]],
  ["a term begun before the last had ended", "EVENT_ORDER", [leading("a", 1, 0), leading("a", 2, 10)]],
  [
    "an end reported twice",
    "EVENT_ORDER",
    [...good, line("stopped", { inc: "a", token: "1", why: "expired", t: ns(9000) })],
  ],
  ["events after closing", "EVENT_ORDER", [line("bye", { inc: "a", t: ns(5) }), ...term("a", 1, 10, 20)]],
  [
    "closed in the middle of a term",
    "EVENT_ORDER",
    [leading("a", 1, 0), line("bye", { inc: "a", t: ns(5) })],
  ],
  ["nobody after the fault", "LIVENESS", [...good, heal(3000, 6000)]],
  ["somebody, but too late", "LIVENESS", [...good, heal(3000, 100), ...term("c", 3, 3200, 3300)]],
  [
    "overlap in the second of two elections",
    "OVERLAP",
    [...term("a", 1, 0, 1000, "f"), ...term("a", 1, 0, 900), ...term("b", 2, 800, 1500)],
  ],
];

/** Small and seeded: a failing legal history can be looked at again. */
function generator(seed: number): () => number {
  let state = seed + 0x9e3779b9;
  return () => {
    state = Math.imul(state ^ (state >>> 15), 0x85ebca6b);
    state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
    state ^= state >>> 16;
    return (state >>> 0) / 2 ** 32;
  };
}

/** A place for one process at a time; a process that was killed is followed by another start. */
interface Slot {
  readonly name: string;
  start: number;
  /** It has work to report until then, and cannot lead again before. */
  freeAt: number;
}

/**
 * Terms one after the other, with gaps as small as nothing; pauses inside and at
 * the end of terms; late reports of paused processes, none of killed ones; terms
 * with one answer; refused writes; spans written again as they grow.
 */
class Legal {
  readonly #random: () => number;
  readonly #slots: Slot[] = ["a", "b", "c", "d"].map((name) => ({ name, start: 0, freeAt: 0 }));
  readonly #lines: Line[] = [];
  #now: number;
  #token: number;
  #value = 0;

  constructor(seed: number) {
    this.#random = generator(seed);
    this.#now = this.#random() * 1000;
    this.#token = Math.floor(this.#random() * 1e6);
  }

  history(): Line[] {
    for (let round = 0; round < 3 + this.#random() * 12; round++) this.#term();
    return this.#lines;
  }

  #term(): void {
    const random = this.#random;
    this.#now += random() < 0.3 ? 0.000_002 : random() * 500;
    const free = this.#slots.filter(({ freeAt }) => freeAt < this.#now);
    const slot = free[Math.floor(random() * free.length)];
    if (slot === undefined) return;
    const inc = `${slot.name}${slot.start}`;
    this.#token += 1 + Math.floor(random() * 5);
    const token = this.#token;
    this.#lines.push(leading(inc, token, this.#now));
    if (random() < 0.1) this.#singleAnswer(inc, token);
    else this.#lead(inc, token, this.#now + random() * 2000);
    this.#lines.push(line("fault", { inc, kind: "stop", t0: ns(this.#now), t1: ns(this.#now + 1) }));
    this.#aftermath(slot, inc, token);
  }

  #singleAnswer(inc: string, token: number): void {
    this.#lines.push(answer(inc, token, this.#now, this.#now + 0.01));
    this.#now += 0.01;
  }

  #lead(inc: string, token: number, end: number): void {
    const random = this.#random;
    for (let at = this.#now; at < end; at = this.#now + 20 + random() * 200) {
      const to = Math.min(end, at + 1 + random() * 600);
      // Written once as it begins and again as it grows.
      for (const part of [0.3, 1]) {
        const until = at + (to - at) * part;
        const n = Math.max(1, Math.floor((until - at) / 2));
        this.#lines.push(line("span", { inc, token: `${token}`, from: ns(at), to: ns(until), n }));
      }
      this.#now = to;
      if (random() < 0.5) this.#lines.push(write("acc", inc, token, token, ++this.#value));
    }
  }

  #aftermath(slot: Slot, inc: string, token: number): void {
    const random = this.#random;
    if (random() < 0.3) {
      slot.start++; // killed: no word of it any more
      return;
    }
    // Resigned: its word comes at once. Paused: it comes late, while another leads.
    const at = this.#now + (random() < 0.5 ? 0.001 : random() * 3000);
    this.#lines.push(
      line("not-held", { inc, token: `${token}`, from: ns(at), to: ns(at + 0.01) }),
      line("stopped", { inc, token: `${token}`, why: "expired", t: ns(at + 0.02) }),
    );
    if (random() < 0.3) this.#lines.push(write("rej", inc, token, token + 1, this.#value));
    slot.freeAt = at + 0.03;
  }
}

export function selftest(checkHistory: Checker, legal = 2000): { code: number; text: string } {
  const problems: string[] = [];
  let terms = 0;
  for (const [what, rule, history] of BAD) {
    const found = checkHistory(history).violations.map((violation) => violation.rule);
    if (!found.includes(rule))
      problems.push(`missed ${rule}: ${what} (found: ${found.join(", ") || "nothing"})`);
  }
  for (let seed = 0; seed < legal; seed++) {
    const { violations, metrics } = checkHistory(new Legal(seed).history());
    terms += metrics.terms;
    for (const { rule, detail } of violations)
      problems.push(`false alarm in legal history ${seed}: ${rule}: ${detail}`);
  }
  const quiet = checkHistory([]).inconclusive.length > 0;
  if (!quiet) problems.push("an empty history was taken for a good one");
  const text = `${BAD.length} bad histories, ${legal} legal ones (${terms} terms): ${problems.length} mistakes`;
  return { code: problems.length > 0 ? 1 : 0, text: [...problems.slice(0, 20), text].join("\n") };
}
