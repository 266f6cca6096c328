/** Follows a control record: by the store's watch where it has one, and by reading again in any case. */
import type { CallOptions } from "../seam/backend.js";
import { onAbort, sleep } from "../kit/wait.js";
import type { Controls } from "./codec.js";
import type { ControlRecord } from "./record.js";

export interface FollowOptions extends CallOptions {
  /** Longest time between two reads where the store pushes changes. A push can be lost. */
  readonly pollMs: number;
  /** The same where it does not push. */
  readonly unpushedMs: number;
  /** The record could not be read; it is read again. */
  readonly failed?: ((error: unknown) => void) | undefined;
  /** Told of every read, before a reader of the generator is. */
  readonly seen?: ((controls: Controls) => void) | undefined;
}

/** A watch that ends at once is not started again sooner than this. */
const REARM_MS = 1_000;

/** Yields what is asked now, then whatever it becomes, until the signal aborts. Never throws. */
export async function* followControls(
  record: ControlRecord,
  options: FollowOptions,
): AsyncGenerator<Controls, void, undefined> {
  const { failed } = options;
  const { clock } = record;
  // A reader that leaves early ends the watch too.
  const stop = new AbortController();
  const { signal } = stop;
  const unlink = onAbort(options.signal, () => stop.abort());
  const watch = new ControlWatch(record, signal);
  let last: string | undefined;
  try {
    while (!signal.aborted) {
      try {
        watch.arm();
        const controls = await record.read({ signal });
        options.seen?.(controls);
        const mark = markOf(controls);
        if (mark !== last) yield controls;
        last = mark;
      } catch (error) {
        if (!signal.aborted) failed?.(error);
      }
      const pollMs = record.pushes ? options.pollMs : options.unpushedMs;
      await sleep(clock, pollMs * (1 + clock.random() / 4), watch.woken);
    }
  } finally {
    unlink();
    stop.abort();
  }
}

/** What a reader is told of again if it changes. */
function markOf({ pause, request, answer }: Controls): string {
  return JSON.stringify([pause?.since, pause?.by, request?.id, answer?.id]);
}

class ControlWatch {
  readonly #record: ControlRecord;
  readonly #signal: AbortSignal;
  #armedAt = -Infinity;
  #watching = false;
  /** A wake that comes while nobody waits counts for the next wait. */
  #wake = new AbortController();

  constructor(record: ControlRecord, signal: AbortSignal) {
    this.#record = record;
    this.#signal = signal;
    onAbort(signal, () => this.#wake.abort());
  }

  /** Aborts at the next change. */
  get woken(): AbortSignal {
    return this.#wake.signal;
  }

  /** Before a read: what changes afterwards wakes. */
  arm(): void {
    if (this.#wake.signal.aborted && !this.#signal.aborted) this.#wake = new AbortController();
    const { clock, pushes } = this.#record;
    if (!pushes || this.#watching || clock.now() - this.#armedAt < REARM_MS) return;
    this.#armedAt = clock.now();
    this.#watching = true;
    const ended = (): void => {
      this.#watching = false;
    };
    this.#record.watch(() => this.#wake.abort(), { signal: this.#signal }).then(ended, ended);
  }
}
