/**
 * Everybody in this process who waits for a change of a key. A few keys have a
 * blocking query each; many share one on their common prefix, since an agent
 * allows a client two hundred connections. What they tell is a hint, in order.
 */
import type { Clock } from "../../seam/clock.js";
import type { ConsulClient, KeyValue, ReadAnswer } from "./client.js";
import { Poller } from "./poller.js";

/** More keys than this are watched together. */
const FEW = 8;
/** Answers a second: of one key, and of all at once, which may be megabytes. */
const KEY_RATE = 50;
const PREFIX_RATE = 8;

/** A key, as an answer had it. */
export interface Sight {
  /** `undefined`: there is no such key. */
  readonly kv: KeyValue | undefined;
  /** Index of the answer: one with a lower index is older. */
  readonly index: bigint;
}

export interface WatchSink {
  seen(sight: Sight): void;
  /** A question failed; others follow. */
  failed(error: unknown): void;
}

interface Watched {
  readonly sinks: Set<WatchSink>;
  last: Sight | undefined;
  poller: Poller | undefined;
}

export interface WatchesOptions {
  readonly client: ConsulClient;
  readonly clock: Clock;
  /** Prefix of all keys; empty: there is none, and no query for all of them. */
  readonly root: string;
  /** How long Consul may keep a question open. */
  readonly waitMs: number;
  /** A key has a lower index than it had: the store was restored from a snapshot, or is another one. */
  wentBack(): void;
}

export class Watches {
  readonly #options: WatchesOptions;
  readonly #watched = new Map<string, Watched>();
  #together: Poller | undefined;
  #closed = false;

  constructor(options: WatchesOptions) {
    this.#options = options;
  }

  /** Tells of every change after the answer with this index. Returns the way to stop. */
  watch(key: string, since: bigint, sink: WatchSink): () => void {
    if (this.#closed) return () => {};
    const watched = this.#watched.get(key) ?? { sinks: new Set(), last: undefined, poller: undefined };
    this.#watched.set(key, watched);
    watched.sinks.add(sink);
    this.#arrange(key, since);
    const { last } = watched;
    if (last !== undefined && last.index > since)
      void Promise.resolve().then(() => {
        if (watched.sinks.has(sink)) sink.seen(last);
      });
    return () => {
      watched.sinks.delete(sink);
      if (watched.sinks.size > 0 || this.#watched.get(key) !== watched) return;
      watched.poller?.stop();
      this.#watched.delete(key);
      this.#arrange();
    };
  }

  close(error: unknown): void {
    this.#closed = true;
    this.#together?.stop();
    const all = [...this.#watched.values()];
    this.#watched.clear();
    for (const { sinks, poller } of all) {
      poller?.stop();
      for (const sink of sinks) sink.failed(error);
    }
  }

  /** `key`: has just come, and is known as of `since`. */
  #arrange(key?: string, since = 0n): void {
    const { root } = this.#options;
    const count = this.#watched.size;
    if (root !== "" && (count > FEW || (this.#together !== undefined && count > FEW / 2))) {
      this.#together ??= this.#poll({ prefix: root }, 0n, PREFIX_RATE, this.#watched);
      for (const watched of this.#watched.values()) {
        watched.poller?.stop();
        watched.poller = undefined;
      }
      return;
    }
    this.#together?.stop();
    this.#together = undefined;
    for (const [name, watched] of this.#watched) {
      const alone = new Map([[name, watched]]);
      watched.poller ??= this.#poll({ key: name }, name === key ? since : 0n, KEY_RATE, alone);
    }
  }

  #poll(
    range: { readonly key: string } | { readonly prefix: string },
    index: bigint,
    perSecond: number,
    whose: ReadonlyMap<string, Watched>,
  ): Poller {
    const { client, clock, waitMs, wentBack } = this.#options;
    return new Poller({
      ...{ client, clock, waitMs, range, index, perSecond },
      answered: (answer) => {
        if (tell(whose, answer)) wentBack();
      },
      failed: (error) => {
        for (const { sinks } of [...whose.values()]) for (const sink of [...sinks]) sink.failed(error);
      },
    });
  }
}

/** `true`: some key has a lower index than it had. A key that was deleted and made anew has a higher one. */
function tell(whose: ReadonlyMap<string, Watched>, { index, kvs }: ReadAnswer): boolean {
  const found = new Map(kvs.map((kv) => [kv.key, kv]));
  let back = false;
  for (const [key, watched] of [...whose]) {
    const kv = found.get(key);
    const { last } = watched;
    watched.last = { kv, index };
    if (last !== undefined && last.kv?.modifyIndex === kv?.modifyIndex) continue;
    if (last?.kv !== undefined && kv !== undefined && kv.modifyIndex < last.kv.modifyIndex) back = true;
    for (const sink of [...watched.sinks]) sink.seen(watched.last);
  }
  return back;
}
