/** One unbroken leadership with one token. */
import type { Deadline } from "./deadline.js";
import { NotLeaderError } from "./errors.js";
import type { Bearer, Fence, FencedResource, Guard } from "./fence.js";
import { checkValue } from "./names.js";
import { deferred, sharedController } from "./waiting.js";
import type { Deferred } from "./waiting.js";

/**
 * Why a term ended. `resigned`: given up on purpose. `closed`: the election was
 * closed. `expired`: the deadline passed without a renewal. `revoked`: the store
 * says that the office is not ours any more.
 */
export type EndReason = "resigned" | "closed" | "expired" | "revoked";

export interface TermEnd {
  readonly reason: EndReason;
  /** One line for people. */
  readonly detail: string;
  /**
   * Whether the work had stopped before the office was given up. `false` after
   * a loss, and when the work did not stop within `drainMs`: then the office was
   * not handed over but ran out.
   */
  readonly drained: boolean;
}

type Phase =
  | { readonly kind: "open" }
  /** On its way out: the signal is aborted, the work may still stop in good order. */
  | { readonly kind: "ending"; readonly reason: EndReason; readonly detail: string }
  | { readonly kind: "over"; readonly end: TermEnd };

const OPEN: Phase = { kind: "open" };

/** What a term asks of whoever keeps it. */
export interface TermKeeper {
  proclaim(value: string): Promise<void>;
  resign(): Promise<void>;
  /** Tells what has to settle before the office may be given up. */
  serve(work: Promise<unknown>): void;
  /** The term found its own end: the deadline has passed. */
  over(): void;
}

/** How long the term has lasted, up to its end. */
type Stopwatch = () => number;

export interface TermOptions {
  readonly election: string;
  readonly candidate: string;
  readonly token: bigint;
  readonly value: string;
  readonly since: number;
  readonly deadline: Deadline;
  /** Monotonic milliseconds since the term began. */
  readonly elapsedMs: Stopwatch;
}

export class Term implements Bearer {
  readonly election: string;
  readonly candidate: string;
  /** Fencing token: strictly rising from term to term. Hand it to every resource that can check it. */
  readonly token: bigint;
  /** Begin of the term by the wall clock, in epoch milliseconds. */
  readonly since: number;
  readonly #deadline: Deadline;
  /** Made when somebody asks for the signal. */
  #controller: AbortController | undefined;
  /** Why the work must stop, once it must. */
  #stop: string | undefined;
  #reported: TermEnd | undefined;
  /** Made when somebody asks for the end before it has come. */
  #awaited: Deferred<TermEnd> | undefined;
  #keeper: TermKeeper | undefined;
  #phase: Phase = OPEN;
  #value: string;
  readonly #elapsedMs: Stopwatch;
  #lastedMs: number | undefined;

  /** @internal Terms come from an election. */
  constructor(options: TermOptions) {
    this.election = options.election;
    this.candidate = options.candidate;
    this.token = options.token;
    this.since = options.since;
    this.#value = options.value;
    this.#deadline = options.deadline;
    this.#elapsedMs = options.elapsedMs;
  }

  /** Settles when the term is over and reported; never rejects. */
  get ended(): Promise<TermEnd> {
    this.#awaited ??= deferred();
    if (this.#reported !== undefined) this.#awaited.resolve(this.#reported);
    return this.#awaited.promise;
  }

  /**
   * Aborts when the work must stop: the term is lost, or being given up. After a
   * SIGSTOP or a blocked event loop other timers may run before this event does:
   * before an act that must not be done twice, ask {@link held} or {@link assertHeld}.
   */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = sharedController();
      if (this.#stop !== undefined) this.#controller.abort(this.#isOver(this.#stop));
    }
    return this.#controller.signal;
  }

  /** @internal Whether {@link signal} has aborted, without making one. */
  get stopping(): boolean {
    return this.#stop !== undefined;
  }

  /**
   * Whether the office is ours at this very moment, computed from the clocks at
   * the call. Stays true while the work drains after {@link signal} aborted for
   * a resignation. It cannot speak for the moment *after* the call: for that
   * there is the {@link token}.
   */
  get held(): boolean {
    return this.remainingMs > 0;
  }

  /** Milliseconds the office is certainly ours if no renewal succeeds any more; 0 when it is over. */
  get remainingMs(): number {
    if (this.#phase.kind === "over") return 0;
    const left = this.#deadline.remainingMs();
    if (left > 0) return left;
    // The getter itself ends the term: nobody may be told "no" here and "yes" later.
    this.#expire();
    return 0;
  }

  /** Throws a {@link NotLeaderError} unless the office is ours at this very moment. */
  assertHeld(): void {
    if (!this.held) throw this.#notLeader();
  }

  /**
   * Binds this term to a resource that checks tokens: what comes back acts under
   * this term's {@link token}, and rejects with a `StaleLeaderError` once the
   * resource has seen a newer one, even if this process was stopped in between
   * and still believes in its term.
   */
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

  /** How long the term has lasted so far, or lasted in all. */
  get lastedMs(): number {
    return this.#lastedMs ?? this.#elapsedMs();
  }

  /** What observers see with this leadership. */
  get value(): string {
    return this.#value;
  }

  /** How it ended, once it has. */
  get end(): TermEnd | undefined {
    return this.#phase.kind === "over" ? this.#phase.end : undefined;
  }

  /** Publishes a new value to all observers, and renews. Rejects if the office is lost. */
  async proclaim(value: string): Promise<void> {
    checkValue(value);
    this.assertHeld();
    await this.#keeper?.proclaim(value);
    this.#value = value;
  }

  /**
   * Gives the office up: aborts {@link signal}, then hands over. For a term from
   * `campaign()` stop the work first; the promise settles when the office is
   * given back. Inside `run()` it only starts the end, since the work itself may
   * be the one to wait for it: await {@link ended} elsewhere. Idempotent.
   */
  async resign(): Promise<void> {
    await this.#keeper?.resign();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.resign();
  }

  /** @internal */
  attach(keeper: TermKeeper): void {
    this.#keeper = keeper;
  }

  /** @internal The office is not given back before this settles (or `drainMs` has passed). Never rejects. */
  serve(work: Promise<unknown>): void {
    this.#keeper?.serve(work);
  }

  /** @internal Starts an end on purpose: the work is told, the office still held. `false` if an end is under way. */
  beginEnd(reason: EndReason, detail: string): boolean {
    if (this.#phase.kind !== "open") return false;
    this.#phase = { kind: "ending", reason, detail };
    this.#abort(detail);
    return true;
  }

  /** @internal From here on `held` is false. `false` if the term was over already. */
  finish(end: TermEnd): boolean {
    if (this.#phase.kind === "over") return false;
    this.#phase = { kind: "over", end };
    this.#lastedMs = this.#elapsedMs();
    this.#abort(end.detail);
    return true;
  }

  /** @internal Finishes an end that was begun, with the reason it was begun for. */
  finishEnding(drained: boolean): boolean {
    if (this.#phase.kind !== "ending") return false;
    const { reason, detail } = this.#phase;
    return this.finish({ reason, detail, drained });
  }

  /** @internal */
  report(end: TermEnd): void {
    this.#reported = end;
    this.#awaited?.resolve(end);
  }

  #expire(): void {
    const ending = this.finishEnding(false);
    if (
      ending ||
      this.finish({ reason: "expired", detail: "the deadline passed without a renewal", drained: false })
    ) {
      this.#keeper?.over();
    }
  }

  #abort(detail: string): void {
    if (this.#stop !== undefined) return;
    this.#stop = detail;
    this.#controller?.abort(this.#isOver(detail));
  }

  #isOver(why: string): NotLeaderError {
    return new NotLeaderError(
      this.token,
      `term ${this.token} of election "${this.election}" is over: ${why}`,
    );
  }

  #notLeader(): NotLeaderError {
    const why = this.end?.detail ?? "it is not held";
    return new NotLeaderError(
      this.token,
      `term ${this.token} of election "${this.election}" is over: ${why}; stop its work`,
    );
  }
}
