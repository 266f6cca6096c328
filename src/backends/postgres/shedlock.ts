/**
 * Elections in the table of ShedLock, beside Java programs that use it: one row a
 * name, `lock_until` in UTC without a zone, by the database's clock. It has no
 * place for a value, no push and no version: candidates poll, and the token is the
 * instant of locking.
 */
import type {
  Backend,
  CallOptions,
  CampaignOptions,
  Candidacy,
  Claim,
  Extension,
  Guarantees,
  Hold,
  Leader,
  Listing,
  ObserveOptions,
} from "../../seam/backend.js";
import type { Clock, Reading } from "../../seam/clock.js";
import { readClocks } from "../../kit/clock.js";
import { invalid } from "../../kit/errors.js";
import { listing, MOST_LISTED } from "../../kit/listing.js";
import { StopSource } from "../../kit/stop.js";
import { bounded, sleep } from "../../kit/wait.js";
import type { Row, Session } from "./client.js";
import { failure, isBeaten, isMissingTable } from "./errors.js";
import { shedlockStatements, type ShedlockStatements } from "./shedlock-sql.js";
import { shedlockDdl, type TableName } from "./table.js";

/** What elections in ShedLock's table promise. */
export const SHEDLOCK_GUARANTEES: Guarantees = {
  exclusion: "single-primary",
  expiry: "store",
  token: "record",
  succession: "unordered",
  honours: [], // its rows have no place for it
  ttl: { minMs: 500, stepMs: 1 },
};

const LONGEST_NAME = 64;
const LONGEST_HOLDER = 255;
/** How often a write that may still arrive is looked for. */
const LOOKS = 4;

export interface ShedlockOptions {
  readonly clock: Clock;
  readonly session: Session;
  readonly table: TableName;
  readonly secrets: readonly string[];
}

export class ShedlockBackend implements Backend {
  readonly name = "postgres";
  readonly guarantees = SHEDLOCK_GUARANTEES;
  readonly #options: ShedlockOptions;
  readonly #sql: ShedlockStatements;
  readonly #retracting = new Set<Promise<void>>();

  constructor(options: ShedlockOptions) {
    this.#options = options;
    this.#sql = shedlockStatements(options.table);
  }

  async campaign(candidacy: Candidacy, { wait, signal, seen }: CampaignOptions): Promise<Hold | null> {
    const { clock } = this.#options;
    checkLengths(candidacy);
    for (;;) {
      const hold = await this.#acquire(candidacy, wait, signal);
      if (hold !== null || !wait) return hold;
      const lock = await this.#bounded(candidacy.attemptMs, signal, (s) => this.#look(candidacy.election, s));
      if (lock !== null) seen?.(lock.token + 1n);
      const pollMs = candidacy.retryMs * (1 + clock.random() / 4);
      await sleep(clock, Math.min(pollMs, Math.max(1, lock?.leftMs ?? 1)), signal);
      signal.throwIfAborted();
    }
  }

  async *observe(election: string, options: ObserveOptions): AsyncGenerator<Leader | null, void, undefined> {
    const { clock } = this.#options;
    const { signal, pollMs, attemptMs } = options;
    let last: Leader | null | undefined;
    while (!signal.aborted) {
      const lock = await this.#bounded(attemptMs, signal, (s) => this.#look(election, s)).catch(
        (error: unknown) => {
          if (!signal.aborted) throw error;
          return null;
        },
      );
      if (signal.aborted) return;
      const leader =
        lock === null || lock.leftMs <= 0
          ? null
          : { candidate: lock.holder, token: lock.token, value: "", since: Number(lock.token / 1000n) };
      const older = leader !== null && last && leader.token < last.token;
      if (!older && (last === undefined || leader?.token !== last?.token)) yield (last = leader);
      const endsMs = leader === null ? pollMs : Math.max(1, lock!.leftMs);
      await sleep(clock, Math.min(pollMs, endsMs), signal);
    }
  }

  async release(claim: Claim, { signal }: CallOptions): Promise<"released" | "not-held"> {
    const rows = await this.#ask(
      this.#sql.release,
      [claim.election, claim.candidate, claim.token.toString()],
      signal,
    );
    return rows.length > 0 ? "released" : "not-held";
  }

  async list({ signal }: CallOptions): Promise<Listing> {
    const rows = await this.#ask(this.#sql.list, [MOST_LISTED + 1], signal);
    return listing(
      rows.map((row) => String(row["name"])),
      rows.length <= MOST_LISTED,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#retracting);
    await this.#options.session[Symbol.asyncDispose]();
  }

  async #acquire(candidacy: Candidacy, wait: boolean, signal: AbortSignal): Promise<Hold | null> {
    const { election, candidate, ttlMs, attemptMs } = candidacy;
    const asked = readClocks(this.#options.clock);
    try {
      const [row] = await this.#bounded(attemptMs, signal, (s) =>
        this.#ask(this.#sql.acquire, [election, candidate, ttlMs], s),
      );
      return row === undefined ? null : this.#hold(candidacy, BigInt(String(row["token"])), asked);
    } catch (error) {
      // It may have been done, or may still be. Who waits takes its own row over; otherwise nobody would.
      if (signal.aborted || !wait) this.#retract(candidacy);
      throw error;
    }
  }

  #hold({ election, candidate, ttlMs }: Candidacy, token: bigint, asked: Reading): Hold {
    let released = false;
    const renew = async ({ signal }: CallOptions): Promise<Extension | "lost"> => {
      if (released) return "lost";
      const again = readClocks(this.#options.clock);
      const rows = await this.#ask(this.#sql.extend, [election, candidate, token.toString(), ttlMs], signal);
      return rows.length > 0 ? { asked: again } : "lost";
    };
    return {
      token,
      asked,
      ttlMs,
      renew,
      // The table has no place for it.
      proclaim: (_value, options) => renew(options),
      release: async (options) => {
        released = true;
        await this.release({ election, candidate, token }, options);
      },
    };
  }

  #retract({ election, candidate, attemptMs }: Candidacy): void {
    const { clock } = this.#options;
    const retracting = bounded(clock, attemptMs, new StopSource(), "taking a lock back", async (signal) => {
      while (!signal.aborted) {
        const rows = await this.#ask(this.#sql.retract, [election, candidate], signal);
        if (rows.length > 0) return;
        await sleep(clock, attemptMs / LOOKS, signal);
      }
    })
      .catch(() => {}) // it runs out by itself
      .finally(() => this.#retracting.delete(retracting));
    this.#retracting.add(retracting);
  }

  async #look(election: string, signal: AbortSignal): Promise<Lock | null> {
    const [row] = await this.#ask(this.#sql.look, [election], signal);
    if (row === undefined) return null;
    return {
      holder: String(row["holder"]),
      token: BigInt(String(row["token"])),
      leftMs: Number(row["left_ms"]),
    };
  }

  #bounded<T>(limitMs: number, signal: AbortSignal, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return bounded(this.#options.clock, limitMs, signal, "asking PostgreSQL", call);
  }

  async #ask(text: string, values: unknown[], signal: AbortSignal): Promise<readonly Row[]> {
    const { session, table, secrets } = this.#options;
    try {
      try {
        return await session.query(text, values, signal);
      } catch (error) {
        if (isBeaten(error)) return [];
        if (!isMissingTable(error)) throw error;
        await session.query(shedlockDdl(table), [], signal);
        return await session.query(text, values, signal);
      }
    } catch (error) {
      throw failure(error, { what: "asking ShedLock's table", secrets, ddl: shedlockDdl(table) });
    }
  }
}

interface Lock {
  readonly holder: string;
  readonly token: bigint;
  readonly leftMs: number;
}

function checkLengths({ election, candidate }: Candidacy): void {
  if (election.length > LONGEST_NAME)
    throw invalid(`a name in ShedLock's table has at most ${LONGEST_NAME} characters`);
  if (candidate.length > LONGEST_HOLDER)
    throw invalid(`a candidate's id in ShedLock's table has at most ${LONGEST_HOLDER} characters`);
}
