/**
 * One blocking query after the other. The index goes back to zero when Consul's
 * does (it was restored, or is another one), and after every failure: the next
 * answer then comes at once, whatever happened meanwhile.
 */
import { Backoff } from "../../kit/backoff.js";
import { StopSource } from "../../kit/stop.js";
import { sleep } from "../../kit/wait.js";
import type { Clock } from "../../seam/clock.js";
import type { ConsulClient, KeyRange, ReadAnswer } from "./client.js";

/** An answer that is this late is not waited for any more: the connection may have died without a word. */
const LATE_MS = 3_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

export interface PollerOptions {
  readonly client: ConsulClient;
  readonly clock: Clock;
  readonly range: KeyRange;
  /** How long Consul may keep a question open. It adds up to a sixteenth by itself. */
  readonly waitMs: number;
  /** Where to go on from; zero: the first answer comes at once. */
  readonly index: bigint;
  /** Answers a second that are asked for at most. */
  readonly perSecond: number;
  answered(answer: ReadAnswer): void;
  failed(error: unknown): void;
}

export class Poller {
  readonly #options: PollerOptions;
  readonly #stop = new StopSource();
  #index: bigint;

  constructor(options: PollerOptions) {
    this.#options = options;
    this.#index = options.index;
    void this.#run();
  }

  stop(): void {
    this.#stop.stop();
  }

  async #run(): Promise<void> {
    const { clock, perSecond, answered, failed } = this.#options;
    const backoff = new Backoff(clock, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
    let since = clock.now();
    let answers = 0;
    while (!this.#stop.aborted) {
      try {
        const answer = await this.#ask();
        if (this.#stop.aborted) return;
        this.#index = nextIndex(this.#index, answer.index);
        backoff.reset();
        answered(answer);
      } catch (error) {
        if (this.#stop.aborted) return;
        this.#index = 0n;
        failed(error);
        await sleep(clock, backoff.next(), this.#stop);
      }
      if (clock.now() - since > 1_000) {
        since = clock.now();
        answers = 0;
      } else if (++answers >= perSecond) await sleep(clock, since + 1_000 - clock.now(), this.#stop);
    }
  }

  async #ask(): Promise<ReadAnswer> {
    const { client, range, waitMs } = this.#options;
    const lateMs = Math.min(LATE_MS, waitMs / 4);
    if (this.#index === 0n) return client.read({ range }, { signal: this.#stop, limitMs: lateMs });
    return client.read(
      { range, since: { index: this.#index, waitMs } },
      { signal: this.#stop, limitMs: (waitMs * 17) / 16 + lateMs },
    );
  }
}

/** As Consul's documentation has it: never below one, and from the start if it went back. */
function nextIndex(known: bigint, answered: bigint): bigint {
  if (answered < known) return 0n;
  return answered > 0n ? answered : 1n;
}
