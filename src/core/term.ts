/** One unbroken leadership with one token, as its leader sees it. */
import { NotLeaderError } from "./errors.js";
import type { Bearer, Fence, FencedResource, Guard } from "./fence.js";
import { checkValue } from "./names.js";

/**
 * Why a term ended. `resigned`: given up on purpose. `closed`: the election was
 * closed. `expired`: the deadline passed without a renewal. `revoked`: the store
 * says that this candidate does not lead any more.
 */
export type EndReason = "resigned" | "closed" | "expired" | "revoked";

/** How a term ended. */
export interface TermEnd {
  readonly reason: EndReason;
  /** One line for people. */
  readonly detail: string;
  /**
   * Whether the work had stopped before leadership was given up. `false` after
   * a loss, and when the work did not stop within `drainMs`: then leadership
   * was not handed over but expired.
   */
  readonly drained: boolean;
}

/** One unbroken leadership with one token. Terms come from an election or a lock. */
export interface Term extends Bearer, AsyncDisposable {
  readonly election: string;
  readonly candidate: string;
  /** Fencing token: strictly rising from term to term. Hand it to every resource that can check it. */
  readonly token: bigint;
  /** Begin of the term by the wall clock, in epoch milliseconds. */
  readonly since: number;
  /** What observers see with this leadership. */
  readonly value: string;
  /**
   * Whether this candidate leads at this very moment, computed from the clocks
   * at the call. Stays true while the work drains after {@link signal} aborted
   * for a resignation. It cannot speak for the moment *after* the call: for
   * that there is the {@link token}.
   */
  readonly held: boolean;
  /** Milliseconds that leadership is certain if no renewal succeeds any more; 0 when it is over. */
  readonly remainingMs: number;
  /** How long the term has lasted so far, or lasted in all. */
  readonly lastedMs: number;
  /**
   * Aborts when the work must stop: the term is lost, or being given up. After a
   * SIGSTOP or a blocked event loop other timers may run before this event does:
   * before an act that must not be done twice, ask {@link held} or {@link assertHeld}.
   */
  readonly signal: AbortSignal;
  /** How it ended, once it has. */
  readonly end: TermEnd | undefined;
  /** Settles when the term is over and reported; never rejects. */
  readonly ended: Promise<TermEnd>;
  /** Throws a {@link NotLeaderError} unless this candidate leads at this very moment. */
  assertHeld(): void;
  /**
   * Binds this term to a resource that checks tokens: what comes back acts under
   * this term's {@link token}, and rejects with a `StaleLeaderError` once the
   * resource has seen a newer one, even if this process was stopped in between.
   */
  guard<Acts>(resource: FencedResource<Acts>): Acts;
  guard(fence: Fence): Guard;
  /** Publishes a new value to all observers. Rejects if leadership is lost. */
  proclaim(value: string): Promise<void>;
  /**
   * Gives leadership up: aborts {@link signal}, then hands over. For a term from
   * `campaign()` stop the work first; the promise settles when the lease is
   * released. Inside `run()` it only starts the end, since the work itself may
   * be the one to wait for it: await {@link ended} elsewhere. Idempotent.
   */
  resign(): Promise<void>;
}

/** What a term shows; the state machine behind it (`Tenure`) has more. */
interface TermState {
  readonly context: { readonly election: string; readonly candidate: string };
  readonly token: bigint;
  readonly since: number;
  readonly value: string;
  readonly remainingMs: number;
  readonly lastedMs: number;
  readonly signal: AbortSignal;
  readonly over: TermEnd | undefined;
  readonly ended: Promise<TermEnd>;
  proclaim(value: string): Promise<void>;
  resign(): Promise<void>;
}

export function termOver(token: bigint, election: string, why: string): NotLeaderError {
  return new NotLeaderError(token, `term ${token} of election "${election}" is over: ${why}`);
}

export function termOf(state: TermState): Term {
  return new TermView(state);
}

class TermView implements Term {
  readonly #state: TermState;

  constructor(state: TermState) {
    this.#state = state;
  }

  get election(): string {
    return this.#state.context.election;
  }

  get candidate(): string {
    return this.#state.context.candidate;
  }

  get token(): bigint {
    return this.#state.token;
  }

  get since(): number {
    return this.#state.since;
  }

  get value(): string {
    return this.#state.value;
  }

  get held(): boolean {
    return this.#state.remainingMs > 0;
  }

  get remainingMs(): number {
    return this.#state.remainingMs;
  }

  get lastedMs(): number {
    return this.#state.lastedMs;
  }

  get signal(): AbortSignal {
    return this.#state.signal;
  }

  get end(): TermEnd | undefined {
    return this.#state.over;
  }

  get ended(): Promise<TermEnd> {
    return this.#state.ended;
  }

  assertHeld(): void {
    if (this.held) return;
    const why = this.end?.detail ?? "it is not held";
    throw termOver(this.token, this.election, `${why}; stop its work`);
  }

  guard<Acts>(resource: FencedResource<Acts>): Acts;
  guard(fence: Fence): Guard;
  guard<Acts>(fence: Fence | FencedResource<Acts>): Guard | Acts {
    if ("bind" in fence) return fence.bind(this);
    return {
      check: async (options) => {
        this.assertHeld();
        await fence.check(this.token, options);
      },
    };
  }

  async proclaim(value: string): Promise<void> {
    checkValue(value);
    this.assertHeld();
    await this.#state.proclaim(value);
  }

  resign(): Promise<void> {
    return this.#state.resign();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#state.resign();
  }
}
