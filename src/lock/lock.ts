/**
 * An election nobody watches. A lock is one candidate of one election: the same
 * lease, renewal, deadline and token, and no second implementation of them.
 *
 * A lock excludes as far as a lease does: a process can be stopped between
 * looking at the lock and acting on it. What must never be written twice checks
 * the token (see `Term.guard`).
 */
import { Candidate } from "../election/candidate.js";
import type { Timer } from "../seam/clock.js";
import { checkElectionOptions } from "../election/known-options.js";
import { ConclaveError, invalid, NotLeaderError } from "../kit/errors.js";
import { checkCall } from "../kit/known-options.js";
import type { ElectionOptions } from "../api/options.js";
import type { Tenure } from "../law/tenure.js";
import type { Term } from "../api/term.js";
import type { Timing } from "../law/timing.js";
import { type Stop, StopSource } from "../kit/stop.js";
import { onAbort, untilAborted } from "../kit/wait.js";

/** What a {@link Lock} is opened with. */
export type LockOptions = Omit<ElectionOptions, "ready" | "maxTermMs">;

/** How long to wait for a {@link Lock}. */
export interface AcquireOptions {
  /** Gives up after this long with a `timeout` error. Default: waits forever. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

const ACQUIRE_OPTIONS: Readonly<Record<keyof AcquireOptions, true>> = { timeoutMs: true, signal: true };
/** The longest a single timer lasts. */
const LONGEST_MS = 2 ** 31 - 1;

/** A lock with a lease and a fencing token. */
export class Lock implements AsyncDisposable {
  readonly name: string;
  readonly #candidate: Candidate;
  readonly #closing = new StopSource();
  /** Everyone of this process who has asked, in the order of asking: each waits for the one before. */
  #tail: Promise<void> = Promise.resolve();
  #asking = 0;

  constructor(options: LockOptions) {
    checkElectionOptions("a lock", options);
    this.#candidate = new Candidate(options);
    this.name = this.#candidate.election;
  }

  /** Whether this object holds the lock at this very moment, by the clock. */
  get held(): boolean {
    return this.#candidate.tenure?.held ?? false;
  }

  get timing(): Timing {
    return this.#candidate.timing;
  }

  /** The term in which the lock is held, if it is. */
  get term(): Term | undefined {
    return this.#candidate.tenure?.term;
  }

  /** Aborts when the lock is lost or being given up. Throws if it is not held. */
  get signal(): AbortSignal {
    return this.#current().signal;
  }

  /** Fencing token: hand it to whatever the lock protects. Throws if it is not held. */
  get token(): bigint {
    return this.#current().token;
  }

  /**
   * Waits for the lock. Callers of one object are served in their order, and
   * processes in theirs where the backend keeps one (`guarantees.succession`).
   * The term that comes back is released by `resign()`, by `release()` here, or
   * by `await using`.
   */
  async acquire(options: AcquireOptions = {}): Promise<Term> {
    return (await this.#acquire("acquire()", options)).term;
  }

  /** One attempt: the term, or `null` if the lock is held or asked for elsewhere. Rejects if the store cannot be asked. */
  async tryAcquire(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<Term | null> {
    checkCall("tryAcquire()", options);
    if (this.#asking > 0) return null;
    const limit = this.#limit(options);
    try {
      const tenure = await this.#inTurn(limit.stop, () => this.#candidate.tryCampaign(limit.stop));
      return tenure?.term ?? null;
    } finally {
      limit.done();
    }
  }

  /**
   * Runs `work` under the lock and gives it back afterwards. If the lock was
   * lost before `work` was done, this rejects with a `NotLeaderError` even though
   * `work` returned: someone else may have worked at the same time. What `work`
   * itself throws goes first.
   */
  async withLock<T>(work: (term: Term) => T | Promise<T>, options: AcquireOptions = {}): Promise<T> {
    const tenure = await this.#acquire("withLock()", options);
    const { term } = tenure;
    const working = Promise.resolve().then(() => {
      if (tenure.held && !tenure.stopping) return work(term);
      throw new NotLeaderError(
        term.token,
        `lock "${this.name}" was lost or given up before the work under it began; nothing was done`,
      );
    });
    // Whoever closes the lock meanwhile waits for the work, as long as `drainMs` allows: told before its first line.
    tenure.serve(working.catch(() => {}));
    try {
      const result = await working;
      if (term.held) return result;
      throw new NotLeaderError(
        term.token,
        `lock "${this.name}" was lost before the work under it was done (${term.end?.detail ?? "it ran out"}); ` +
          "another holder may have worked at the same time: check what it protects, or fence it with the token",
      );
    } finally {
      await term.resign();
      await term.ended;
    }
  }

  /** Gives the lock back, if it is held. */
  async release(): Promise<void> {
    await this.#candidate.resign();
  }

  /** See {@link Election.acceptRegression}: the lock's tokens begin anew in a store that was wiped or restored. */
  acceptRegression(): void {
    this.#candidate.acceptRegression();
  }

  /** Ends everything: who waits is refused, what is held is given back. */
  async close(): Promise<void> {
    this.#closing.stop(new ConclaveError("state", `lock "${this.name}" is closed; open a new one`));
    await this.#candidate.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #acquire(what: string, options: AcquireOptions): Promise<Tenure> {
    checkCall(what, options, ACQUIRE_OPTIONS);
    const limit = this.#limit(options);
    try {
      return await this.#inTurn(limit.stop, () => this.#candidate.campaign(limit.stop));
    } finally {
      limit.done();
    }
  }

  #current(): Term {
    const { term } = this;
    if (term !== undefined) return term;
    throw new ConclaveError("state", `lock "${this.name}" is not held; acquire it first`);
  }

  /** Takes a place behind those who asked before, and keeps it until the term is over. */
  async #inTurn<T extends Tenure | null>(stop: Stop, campaign: () => Promise<T>): Promise<T> {
    const before = this.#tail;
    let leave = (): void => {};
    this.#tail = new Promise<void>((resolve) => {
      leave = () => {
        this.#asking--;
        // Whoever gives up early does not let others past the one before.
        void before.then(resolve);
      };
    });
    this.#asking++;
    try {
      await untilAborted(stop, before);
      const tenure = await campaign();
      if (tenure === null) leave();
      else void tenure.ended.then(leave);
      return tenure;
    } catch (error) {
      leave();
      throw error;
    }
  }

  #limit(options: AcquireOptions): { stop: StopSource; done: () => void } {
    const { timeoutMs } = options;
    if (timeoutMs !== undefined && timeoutMs !== Infinity && !(timeoutMs >= 0 && timeoutMs <= LONGEST_MS))
      throw invalid(`timeoutMs must lie between 0 and ${LONGEST_MS} milliseconds, got ${timeoutMs}`);
    const source = new StopSource();
    let timer: Timer | undefined;
    const unlinks: (() => void)[] = [];
    const done = (): void => {
      timer?.cancel();
      unlinks.forEach((unlink) => unlink());
    };
    // Whoever waits is told in a later microtask; by then `close()` may have resolved, and no timer may be left.
    const stop = (reason: unknown): void => {
      done();
      source.stop(reason);
    };
    if (timeoutMs !== undefined && timeoutMs !== Infinity)
      timer = this.#candidate.clock.after(timeoutMs, () =>
        stop(new ConclaveError("timeout", `lock "${this.name}" was not free within ${timeoutMs} ms`)),
      );
    for (const signal of [this.#closing, ...(options.signal ? [options.signal] : [])])
      unlinks.push(onAbort(signal, () => stop(signal.reason)));
    return { stop: source, done };
  }
}
