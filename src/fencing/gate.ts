/**
 * Check and act as one step, for acts that take time. Acts of one token run side
 * by side; the first act of a newer token tells the older ones to stop, lets none
 * of them start any more, and begins when they have settled.
 */
import type { Clock } from "../seam/clock.js";
import { systemClock } from "../kit/clock.js";
import { ConclaveError, StaleLeaderError } from "../kit/errors.js";
import type { Bearer, Fence, FencedResource, FenceOptions } from "../seam/fence.js";
import { deferred, onAbort, sleep } from "../kit/wait.js";
import { MemoryFence } from "./memory.js";

/** Options of a {@link Gate}. */
export interface GateOptions {
  /**
   * What remembers the highest token beyond this process, where that is needed
   * (a record, a file, etcd). Default: this process's memory.
   */
  readonly fence?: Fence | undefined;
  /** How long a newer leader waits for an older one's act to settle before it is turned away. Default 10 s. */
  readonly drainMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

/** Leave to act, until it is given back. */
export interface Pass {
  readonly token: bigint;
  /** Aborts when a newer leader has come (settle soon, it waits), or when nobody waits for the outcome any more. */
  readonly signal: AbortSignal;
  /** Aborts {@link signal}: the act is to settle soon. It counts until it leaves. */
  stop(reason: Error): void;
  /** The act has settled. */
  leave(): void;
}

/** What a leader may do behind a {@link Gate}. */
export interface GateActs {
  run<T>(act: (pass: Pass) => T | Promise<T>, options?: FenceOptions): Promise<T>;
}

interface Running {
  readonly token: bigint;
  readonly controller: AbortController;
  readonly left: Promise<void>;
}

const DEFAULT_DRAIN_MS = 10_000;

/** A fence in memory that also waits for acts of earlier leaders to end. */
export class Gate implements FencedResource<GateActs> {
  readonly #local = new MemoryFence();
  readonly #fence: Fence | undefined;
  readonly #drainMs: number;
  readonly #clock: Clock;
  readonly #running = new Set<Running>();

  constructor(options: GateOptions = {}) {
    this.#fence = options.fence;
    this.#drainMs = options.drainMs ?? DEFAULT_DRAIN_MS;
    this.#clock = options.clock ?? systemClock;
  }

  async check(token: bigint, options: FenceOptions = {}): Promise<void> {
    // The durable fence first: a token that it refuses, or cannot be asked about, must not shut others out here.
    await this.#fence?.check(token, options);
    this.#local.check(token);
  }

  /** Runs one act under a token. The refusal, if any, comes before the act has begun. */
  async run<T>(token: bigint, act: (pass: Pass) => T | Promise<T>, options: FenceOptions = {}): Promise<T> {
    const pass = await this.enter(token, options);
    try {
      return await act(pass);
    } finally {
      pass.leave();
    }
  }

  /** As {@link run}, for acts that have no one function: `leave()` must be called, whatever happens. */
  async enter(token: bigint, options: FenceOptions = {}): Promise<Pass> {
    await this.check(token, options);
    await this.#drain(token, options.signal);
    // While we waited, a newer one may have come.
    this.#local.check(token);
    const { promise: left, resolve } = deferred<void>();
    const controller = new AbortController();
    const running: Running = { token, controller, left };
    this.#running.add(running);
    const leave = (): void => {
      this.#running.delete(running);
      resolve();
    };
    const stop = (reason: Error): void => controller.abort(reason);
    return { token, signal: controller.signal, stop, leave };
  }

  bind(bearer: Bearer): GateActs {
    return {
      run: async (act, options = {}) => {
        bearer.assertHeld();
        return this.run(bearer.token, act, options);
      },
    };
  }

  async #drain(token: bigint, signal: AbortSignal | undefined): Promise<void> {
    const older = [...this.#running].filter((running) => running.token < token);
    if (older.length === 0) return;
    for (const { token: old, controller } of older) controller.abort(new StaleLeaderError(old, token));
    const waiting = new AbortController();
    const unlink = signal ? onAbort(signal, () => waiting.abort()) : (): void => {};
    const settled = Promise.all(older.map(({ left }) => left)).then(() => true);
    const gone = await Promise.race([
      settled,
      sleep(this.#clock, this.#drainMs, waiting.signal).then(() => false),
    ]);
    unlink();
    waiting.abort();
    if (gone) return;
    signal?.throwIfAborted();
    throw new ConclaveError(
      "unavailable",
      `an act of an older leader has not settled within ${this.#drainMs} ms; nothing was done. Try again, and make acts honour pass.signal`,
    );
  }
}
