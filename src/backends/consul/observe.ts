/**
 * Following who leads. Reads are consistent; a watch says when there is something
 * new and brings it along. What it brings is left out if it is older than what
 * was shown, and read anew.
 */
import type { Leader, ObserveOptions } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import { onAbort } from "../../kit/wait.js";
import type { ConsulClient, KeyValue } from "./client.js";
import { leaderFromKey } from "./envelope.js";
import { assertLock } from "./keys.js";
import type { Sight, Watches } from "./watches.js";

export interface Observed {
  readonly client: ConsulClient;
  readonly clock: Clock;
  readonly watches: Watches;
  readonly key: string;
}

export async function* observeLeader(
  { client, clock, watches, key }: Observed,
  { signal, pollMs, attemptMs }: ObserveOptions,
): AsyncGenerator<Leader | null> {
  const mailbox = new Mailbox(clock, signal);
  try {
    while (!signal.aborted) {
      const { index, kvs } = await client.read({ range: { key } }, { signal, limitMs: attemptMs });
      let shown = index;
      yield shownAs(kvs[0]);
      mailbox.follow(watches, key, index);
      for (;;) {
        const sight = await mailbox.next(pollMs * (0.75 + 0.25 * clock.random()));
        // Silence, or something older than what was shown: a wiped store, perhaps.
        if (sight === undefined || sight.index < shown) break;
        shown = sight.index;
        yield shownAs(sight.kv);
      }
    }
  } finally {
    mailbox.close();
  }
}

function shownAs(kv: KeyValue | undefined): Leader | null {
  if (kv === undefined) return null;
  assertLock(kv);
  return leaderFromKey(kv);
}

/** The newest sight since somebody last asked. */
class Mailbox {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #unlink: () => void;
  #unwatch: (() => void) | undefined;
  #sight: Sight | undefined;
  #error: { readonly error: unknown } | undefined;
  #arrived: (() => void) | undefined;

  constructor(clock: Clock, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
    this.#unlink = onAbort(signal, () => this.#arrived?.());
  }

  /** From the first read on; the watch goes on over later ones. */
  follow(watches: Watches, key: string, since: bigint): void {
    this.#unwatch ??= watches.watch(key, since, {
      seen: (sight) => {
        this.#sight = sight;
        this.#arrived?.();
      },
      failed: (error) => {
        this.#error = { error };
        this.#arrived?.();
      },
    });
  }

  /** `undefined`: nothing came within the limit, or the observer is leaving. Throws what a question failed with. */
  async next(limitMs: number): Promise<Sight | undefined> {
    if (this.#sight === undefined && this.#error === undefined && !this.#signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = this.#clock.after(limitMs, () => this.#arrived?.());
        this.#arrived = () => {
          timer.cancel();
          this.#arrived = undefined;
          resolve();
        };
      });
    }
    const [sight, failed] = [this.#sight, this.#error];
    this.#sight = undefined;
    this.#error = undefined;
    if (sight === undefined && failed !== undefined) throw failed.error;
    return sight;
  }

  close(): void {
    this.#unwatch?.();
    this.#unlink();
    this.#arrived?.();
  }
}
