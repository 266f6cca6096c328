/**
 * One connection that listens, for all who wait on this backend. It is a hint: a
 * pooler may swallow it, so after every LISTEN a notification is sent the other
 * way round, and if it does not come, candidates poll and the log says so once.
 */
import type { Clock, Timer } from "../../seam/clock.js";
import { Backoff } from "../../kit/backoff.js";
import { bounded, deferred, settlesWithin, sleep } from "../../kit/wait.js";
import type { Subscription, Subscribe } from "./client.js";

/** What a notification says: the key, and the row as it was written if it fits. */
export interface Notice {
  readonly version: bigint;
  readonly record: string | undefined;
}

export type Wake = (notice?: Notice) => void;

export interface ListenerOptions {
  readonly clock: Clock;
  readonly channel: string;
  readonly open: Subscribe;
  /** Sends this payload to the channel on the way that statements take. */
  readonly notify: (payload: string, signal: AbortSignal) => Promise<void>;
  readonly warn: (message: string) => void;
}

const OPEN_MS = 5_000;
/** How long a notification to ourselves may take. */
const TEST_MS = 5_000;
/** A connection is not closed with the last who waits: the next may come in a moment. */
const LINGER_MS = 10_000;
/** A connection that is dead without a word is found by asking it this often. */
const PING_MS = 20_000;
/** Where notifications do not arrive at all, they hardly ever will. */
const SILENT_MS = 300_000;
const TEST = "test ";

export class Listener {
  readonly #options: ListenerOptions;
  readonly #wakes = new Map<string, Set<Wake>>();
  /** Aborts when nobody listens any more. */
  #running: AbortController | undefined;
  #linger: Timer | undefined;
  /** Between LISTEN and the end of the connection. */
  #hears = false;
  #warned = false;
  /** The notification to ourselves that is waited for. */
  #test: { readonly payload: string; readonly heard: () => void } | undefined;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  /** Calls `wake` when it listens, and then with every notice of this key. Returns how to stop. */
  add(key: string, wake: Wake): () => void {
    const wakes = this.#wakes.get(key) ?? new Set();
    this.#wakes.set(key, wakes.add(wake));
    this.#linger?.cancel();
    if (this.#running === undefined) this.#start();
    else if (this.#hears) wake();
    return () => {
      wakes.delete(wake);
      if (wakes.size === 0 && this.#wakes.get(key) === wakes) this.#wakes.delete(key);
      if (this.#wakes.size === 0 && this.#running !== undefined) {
        this.#linger?.cancel();
        this.#linger = this.#options.clock.after(LINGER_MS, () => this.close());
      }
    };
  }

  close(): void {
    this.#linger?.cancel();
    this.#running?.abort(new Error("nobody listens any more"));
    this.#running = undefined;
  }

  #start(): void {
    const running = new AbortController();
    this.#running = running;
    // It rejects for no reason: whatever fails is tried again.
    void this.#run(running.signal).finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const backoff = new Backoff(clock, 250, 30_000);
    while (!signal.aborted) {
      try {
        const heard = await this.#listen(signal);
        if (heard) backoff.reset();
        else await sleep(clock, SILENT_MS, signal);
      } catch {
        // Candidates poll meanwhile, and their own requests say what is wrong.
      }
      await sleep(clock, backoff.next(), signal);
    }
  }

  /** Until the connection ends. `false`: it is open, but hears nothing. */
  async #listen(signal: AbortSignal): Promise<boolean> {
    const { clock, channel, open } = this.#options;
    const subscription = await bounded(clock, OPEN_MS, signal, "listening", (limited) =>
      open(channel, (payload) => this.#notified(payload), limited),
    );
    try {
      this.#hears = true;
      this.#wakeAll();
      if (!(await this.#hearsItself(signal))) {
        this.#warnOnce();
        return false;
      }
      await this.#keep(subscription, signal);
      return true;
    } finally {
      this.#hears = false;
      subscription.close();
    }
  }

  async #hearsItself(signal: AbortSignal): Promise<boolean> {
    const { clock, notify } = this.#options;
    const { promise, resolve } = deferred<void>();
    const payload = `${TEST}${clock.uniqueId()}`;
    this.#test = { payload, heard: resolve };
    try {
      await bounded(clock, TEST_MS, signal, "testing notifications", (limited) => notify(payload, limited));
      const heard = await settlesWithin(clock, TEST_MS, signal, promise);
      return heard || signal.aborted;
    } finally {
      this.#test = undefined;
    }
  }

  /** Asks now and then whether the connection still stands. */
  async #keep(subscription: Subscription, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted && !(await settlesWithin(clock, PING_MS, signal, subscription.ended))) {
      if (signal.aborted) return;
      if (subscription.ping !== undefined)
        await bounded(clock, OPEN_MS, signal, "asking whether it still listens", () => subscription.ping!());
    }
  }

  #notified(payload: string): void {
    if (payload === this.#test?.payload) return this.#test.heard();
    const { key, notice } = parseNotice(payload);
    for (const wake of this.#wakes.get(key) ?? []) wake(notice);
  }

  #wakeAll(): void {
    for (const wakes of this.#wakes.values()) for (const wake of wakes) wake();
  }

  #warnOnce(): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#options.warn(
      "PostgreSQL notifications do not arrive (is there a pooler in transaction mode in between?): candidates poll, so that handing over takes up to retryMs; name a direct connection for listening to avoid that",
    );
  }
}

/** Key, version and record on a line each; the record may have more, and is missing where it was too long. */
function parseNotice(payload: string): { readonly key: string; readonly notice: Notice | undefined } {
  const [, key = "", version = "", record] = /^([^\n]*)\n(\d{1,19})(?:\n([^]*))?$/.exec(payload) ?? [];
  return { key, notice: version === "" ? undefined : { version: BigInt(version), record } };
}
