/**
 * The last terms of an election, as its leaders wrote them down: one record
 * beside the leases. It is for people. Nothing is decided by it, and a term that
 * is missing here (its leader crashed, or is of another language) was one all the
 * same.
 */
import type { EndReason } from "../api/term.js";
import type { Backend, CallOptions } from "../seam/backend.js";
import type { Clock } from "../seam/clock.js";
import type { Entry, RecordStore } from "../seam/table.js";
import { systemClock } from "../kit/clock.js";
import { ConclaveError } from "../kit/errors.js";
import { recordKey } from "../kit/names.js";
import { recordsOf } from "../kit/records.js";
import { EMPTY } from "./codec.js";
import { parseToken } from "../kit/token.js";
import { bounded, sleep } from "../kit/wait.js";

/** First part of the record's key: `history.<election>`. */
export const HISTORY = "history";

/** One term, as the history has it. */
export interface PastTerm {
  readonly candidate: string;
  readonly token: bigint;
  /** When it began, by its leader's wall clock, in epoch milliseconds. */
  readonly since: number;
  /** How long it lasted, by its leader's monotonic clock; `null`: not known. */
  readonly lastedMs: number | null;
  /** Why it ended. `null`: it goes on, or nobody has recorded its end yet. `not-recorded`: a later leader found it without an end. */
  readonly reason: EndReason | "not-recorded" | null;
  /** One line for people. */
  readonly detail: string;
}

/** What the store has of the terms of one election. */
export interface TermHistory {
  /** Oldest first; the newest 50 of them. */
  readonly terms: readonly PastTerm[];
  /** How many terms have been recorded in all. */
  readonly recorded: number;
  /** How often the leader of a recorded term was another one than that of the term before. */
  readonly changes: number;
}

const FORMAT = 1;
const MOST_TERMS = 50;
/** As JSON within JSON; the smallest store takes 32 KiB. */
const LARGEST_BYTES = 24 * 1024;
const LARGEST_TEXT = 64 * 1024;
const LONGEST_DETAIL = 200;
const MOST_RACES = 20;
const ATTEMPT_MS = 5_000;

const NO_HISTORY: TermHistory = { terms: [], recorded: 0, changes: 0 };

/** The last terms of an election whose leaders record them (`history: true`); `null`: none has. */
export async function readHistory(
  backend: Pick<Backend, "records">,
  name: string,
  options: Partial<CallOptions> = {},
): Promise<TermHistory | null> {
  const records = recordsOf(backend.records, "the history of an election");
  const record = new HistoryRecord({ records, election: name, clock: systemClock, attemptMs: ATTEMPT_MS });
  return record.read({ signal: options.signal ?? new AbortController().signal });
}

export interface HistoryRecordOptions {
  readonly records: RecordStore;
  readonly election: string;
  readonly clock: Clock;
  /** Longest a single request may take. */
  readonly attemptMs: number;
}

export class HistoryRecord {
  readonly #options: HistoryRecordOptions;
  readonly #key: string;

  constructor(options: HistoryRecordOptions) {
    this.#options = options;
    this.#key = recordKey(HISTORY, options.election);
  }

  async read(options: CallOptions): Promise<TermHistory | null> {
    const entry = await this.#read(options.signal);
    return entry === null || entry.record === EMPTY
      ? null
      : decodeHistory(entry.record, this.#options.election);
  }

  /** Writes what is known of a term, in the place of what was. To do it twice is to do it once. */
  async write(term: PastTerm, { signal }: CallOptions): Promise<void> {
    const { records, clock, election } = this.#options;
    for (let race = 0; race < MOST_RACES; race++) {
      const entry = await this.#read(signal);
      const before =
        entry === null || entry.record === EMPTY ? NO_HISTORY : decodeHistory(entry.record, election);
      const text = encodeHistory(withTerm(before, term));
      const expected = entry?.version ?? null;
      const written = await this.#bounded("writing", signal, (s) =>
        records.write(this.#key, expected, text, { signal: s }),
      );
      if (written !== null) return;
      await sleep(clock, clock.random() * Math.min(race * 5, 50), signal);
      signal.throwIfAborted();
    }
    throw new ConclaveError(
      "unavailable",
      `the history of election "${election}" is written by too many at once`,
    );
  }

  #read(signal: AbortSignal): Promise<Entry | null> {
    return this.#bounded("reading", signal, (s) => this.#options.records.read(this.#key, { signal: s }));
  }

  #bounded<T>(doing: string, signal: AbortSignal, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, attemptMs, election } = this.#options;
    return bounded(clock, attemptMs, signal, `${doing} the history of election "${election}"`, call);
  }
}

/** Adds a term, or what became of it. Terms before the newest that nobody ended are closed: their leaders are gone. */
export function withTerm(history: TermHistory, term: PastTerm): TermHistory {
  const { terms, recorded, changes } = history;
  const fresh = { ...term, detail: term.detail.slice(0, LONGEST_DETAIL) };
  const known = terms.some(({ token }) => token === term.token);
  const others = terms.filter(({ token }) => token !== term.token);
  const sorted = [...others, fresh].sort((a, b) => (a.token < b.token ? -1 : 1));
  const last = terms.at(-1);
  const changed =
    !known && last !== undefined && last.token < term.token && last.candidate !== term.candidate;
  const closed = sorted.map((one, i) =>
    one.reason === null && i < sorted.length - 1 ? { ...one, reason: "not-recorded" as const } : one,
  );
  return {
    terms: closed.slice(-MOST_TERMS),
    recorded: recorded + (known ? 0 : 1),
    changes: changes + (changed ? 1 : 0),
  };
}

function encodeHistory({ terms, recorded, changes }: TermHistory): string {
  for (let first = 0; ; first++) {
    const kept = terms.slice(first).map((term) => ({ ...term, token: term.token.toString() }));
    const text = JSON.stringify({ v: FORMAT, recorded, changes, terms: kept });
    if (kept.length <= 1 || Buffer.byteLength(JSON.stringify(text)) <= LARGEST_BYTES) return text;
  }
}

function decodeHistory(text: string, election: string): TermHistory {
  const decoded = text.length <= LARGEST_TEXT ? decode(text) : undefined;
  if (decoded !== undefined) return decoded;
  throw new ConclaveError(
    "conflict",
    `the history of election "${election}" cannot be read by this version; it was left alone. Upgrade this program, or ` +
      "remove the record",
  );
}

function decode(text: string): TermHistory | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { v, recorded, changes, terms } = fields(parsed);
  if (v !== FORMAT || !isCount(recorded) || !isCount(changes) || !Array.isArray(terms)) return undefined;
  const decoded = terms.map(decodeTerm);
  return decoded.includes(undefined)
    ? undefined
    : { recorded, changes, terms: decoded.filter((term) => term !== undefined) };
}

const REASONS: readonly unknown[] = ["resigned", "closed", "expired", "revoked", "not-recorded", null];

function decodeTerm(value: unknown): PastTerm | undefined {
  const { candidate, token, since, lastedMs, reason, detail } = fields(value);
  const number = parseToken(token);
  if (typeof candidate !== "string" || number === undefined || typeof detail !== "string") return undefined;
  if (typeof since !== "number" || (lastedMs !== null && typeof lastedMs !== "number")) return undefined;
  return isReason(reason) ? { candidate, token: number, since, lastedMs, reason, detail } : undefined;
}

function isReason(value: unknown): value is PastTerm["reason"] {
  return REASONS.includes(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
