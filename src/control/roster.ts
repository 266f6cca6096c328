/**
 * Who stands in an election, with its priority: one record beside the leases.
 * Each candidate bumps a line of its own; a line that is not bumped for its ttl,
 * by the clock of whoever looks, is of a candidate that is gone. It is advice: it
 * orders candidates and shows them. Who leads is decided by the lease alone, and
 * a roster that is lost, stale or forged costs order, never exclusion.
 */
import type { CallOptions } from "../seam/backend.js";
import type { Clock } from "../seam/clock.js";
import type { RecordStore } from "../seam/table.js";
import { namesCandidate, recordKey } from "../kit/names.js";
import { bounded } from "../kit/wait.js";

/** One candidate's line. */
export interface RosterLine {
  /** Bumped by the candidate alone. */
  readonly beat: number;
  /** How long the line counts without a beat. */
  readonly ttlMs: number;
  readonly priority: number;
  readonly eligible: boolean;
  /** Whether it led when it wrote this. For people, and for who follows: a leader that goes is not one to wait for. */
  readonly leads: boolean;
  /** When it began to stand, by its own wall clock; for people. */
  readonly since: number;
}

export type RosterLines = ReadonlyMap<string, RosterLine>;

/** First part of the record's key: `roster.<election>`. */
export const ROSTER = "roster";
export const MOST_PRIORITY = 1_000_000;
const FORMAT = 1;
/** More do not fit the smallest store; those are not shown, and stand without priority. */
const MOST_MEMBERS = 100;
const LARGEST_TEXT = 64 * 1024;
const LONGEST_TTL_MS = 60_000;
const MOST_RACES = 5;

export interface RosterOptions {
  readonly records: RecordStore;
  readonly election: string;
  readonly clock: Clock;
  readonly attemptMs: number;
}

export class Roster {
  readonly #options: RosterOptions;
  readonly #key: string;
  readonly #seen = new Map<string, Sighting>();
  /** The last round trip of a write. */
  roundTripMs = 0;

  constructor(options: RosterOptions) {
    this.#options = options;
    this.#key = recordKey(ROSTER, options.election);
  }

  /** Looks, and remembers who has moved since the last look. */
  async look(options: CallOptions): Promise<void> {
    this.#note(decodeRoster((await this.#read(options.signal))?.record));
  }

  /** Writes this candidate's line, or takes it away (`null`), and leaves out who is gone. Not written after some lost races. */
  async put(candidate: string, line: RosterLine | null, { signal }: CallOptions): Promise<void> {
    const { records, clock, attemptMs } = this.#options;
    for (let race = 0; race < MOST_RACES; race++) {
      const entry = await this.#read(signal);
      this.#note(decodeRoster(entry?.record));
      const lines = new Map([...this.living()].map(([id, { line: known }]) => [id, known]));
      lines.delete(candidate);
      if (line !== null && lines.size < MOST_MEMBERS) lines.set(candidate, line);
      const text = encodeRoster(lines);
      const askedAt = clock.now();
      const written = await bounded(clock, attemptMs, signal, "writing the roster", (s) =>
        records.write(this.#key, entry?.version ?? null, text, { signal: s }),
      );
      if (written === null) continue;
      this.roundTripMs = clock.now() - askedAt;
      this.#note(lines);
      return;
    }
  }

  /** Who has moved within its ttl by our clock, or was seen for the first time as recently. */
  living(): ReadonlyMap<string, Sighting> {
    const now = this.#options.clock.now();
    return new Map([...this.#seen].filter(([, { line, at }]) => now - at < line.ttlMs));
  }

  #read(signal: AbortSignal): ReturnType<RecordStore["read"]> {
    const { records, clock, attemptMs } = this.#options;
    return bounded(clock, attemptMs, signal, "reading the roster", (s) =>
      records.read(this.#key, { signal: s }),
    );
  }

  #note(lines: RosterLines): void {
    const now = this.#options.clock.now();
    for (const id of this.#seen.keys()) if (!lines.has(id)) this.#seen.delete(id);
    for (const [id, line] of lines) {
      const known = this.#seen.get(id);
      if (known?.line.beat === line.beat) continue;
      // Whoever was silent for too long begins anew.
      const steady = known !== undefined && now - known.at < known.line.ttlMs;
      const freshSince = steady ? (known.freshSince ?? now) : undefined;
      this.#seen.set(id, { line, at: now, freshSince });
    }
  }
}

export interface Sighting {
  readonly line: RosterLine;
  /** When its last beat was seen, by our clock. */
  readonly at: number;
  /** Since when it has been seen to beat without a gap; `undefined`: it was found, not seen. */
  readonly freshSince: number | undefined;
}

export function encodeRoster(lines: RosterLines): string {
  return JSON.stringify({ v: FORMAT, members: Object.fromEntries(lines) });
}

/** Others wrote it: what cannot be meant is left out. */
export function decodeRoster(text: string | undefined): RosterLines {
  const lines = new Map<string, RosterLine>();
  if (text === undefined || text.length > LARGEST_TEXT) return lines;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return lines;
  }
  const { v, members } = fields(parsed);
  if (v !== FORMAT) return lines;
  for (const [id, value] of Object.entries(fields(members)).slice(0, MOST_MEMBERS)) {
    const line = lineOf(fields(value));
    if (namesCandidate(id) && line !== undefined) lines.set(id, line);
  }
  return lines;
}

function lineOf({
  beat,
  ttlMs,
  priority,
  eligible,
  leads,
  since,
}: Record<string, unknown>): RosterLine | undefined {
  if (!isNumber(beat) || !isNumber(ttlMs) || !isNumber(priority) || !isNumber(since)) return undefined;
  if (ttlMs <= 0 || Math.abs(priority) > MOST_PRIORITY || typeof eligible !== "boolean") return undefined;
  return { beat, ttlMs: Math.min(ttlMs, LONGEST_TTL_MS), priority, eligible, leads: leads === true, since };
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}
