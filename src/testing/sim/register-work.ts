/** What a process does with records besides: it reads, and writes on what it has read last. */
import { bounded, sleep } from "../../kit/wait.js";
import type { RecordStore } from "../../seam/table.js";
import type { SimClock } from "./clock.js";
import type { Random } from "./random.js";
import type { RegisterHistory } from "./register-history.js";

export interface RegisterWorkOptions {
  readonly records: RecordStore;
  readonly history: RegisterHistory;
  readonly clock: SimClock;
  readonly random: Random;
  readonly name: string;
  /** Between two calls, about. */
  readonly pauseMs: number;
}

const KEYS = ["alpha", "beta"] as const;

export class RegisterWork {
  readonly #options: RegisterWorkOptions;
  readonly #stop = new AbortController();
  readonly #known = new Map<string, bigint | null>();
  readonly #ended: Promise<void>;
  #writes = 0;

  constructor(options: RegisterWorkOptions) {
    this.#options = options;
    this.#ended = this.#run();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { clock, random, pauseMs } = this.#options;
    const { signal } = this.#stop;
    for (;;) {
      await sleep(clock, random.next() * 2 * pauseMs, signal).catch(() => {});
      if (signal.aborted) return;
      const key = random.pick(KEYS);
      // What it knows is often old: then a write must be refused.
      const writes = this.#known.has(key) && random.chance(0.6);
      const call = (limit: AbortSignal): Promise<void> =>
        writes ? this.#write(key, limit) : this.#read(key, limit);
      await bounded(clock, 4 * pauseMs, signal, "a record", call).catch(() => {});
    }
  }

  async #read(key: string, signal: AbortSignal): Promise<void> {
    const { records, history } = this.#options;
    const call = history.read(key);
    const entry = await records.read(key, { signal });
    history.was(call, entry);
    this.#known.set(key, entry?.version ?? null);
  }

  async #write(key: string, signal: AbortSignal): Promise<void> {
    const { records, history, name } = this.#options;
    const expected = this.#known.get(key) ?? null;
    const text = `${name} ${++this.#writes}`;
    const call = history.write(key, expected, text);
    const entry = await records.write(key, expected, text, { signal });
    if (entry === null) {
      history.refused(call, expected);
      this.#known.delete(key);
    } else {
      history.done(call, expected, entry);
      this.#known.set(key, entry.version);
    }
  }
}
