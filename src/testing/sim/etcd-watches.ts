/** Watches of the modelled etcd: from a revision on, resumed after a break, and sometimes silent for good. */
import type { KeyValue, WatchEvent, WatchNotice, WatchRequest } from "../../backends/etcd/client.js";
import type { Link } from "./network.js";
import type { Random } from "./random.js";
import type { Scheduler } from "./scheduler.js";

/** What the store needs of the way to a process. */
export type EtcdLink = Pick<Link, "call" | "notify" | "breaks" | "coin"> & {
  readonly process: { readonly alive: boolean; readonly node: { readonly id: string } };
};

export type Timeline = Pick<Scheduler, "now" | "quietly">;

interface Watcher {
  readonly link: EtcdLink;
  readonly request: WatchRequest;
  readonly sink: (notice: WatchNotice) => void;
  /** First revision that was not told yet; unknown until it is told where the watch begins. */
  next: bigint | undefined;
  stopped: boolean;
}

/** How long a broken watch takes to be noticed and resumed. */
const RESUME_MS = 2_000;

export class EtcdWatches {
  readonly #scheduler: Timeline;
  readonly #random: Random;
  readonly #revision: () => bigint;
  readonly #watchers = new Set<Watcher>();
  #log: WatchEvent[] = [];

  constructor(scheduler: Timeline, random: Random, revision: () => bigint) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#revision = revision;
  }

  committed(changes: readonly WatchEvent[]): void {
    this.#log.push(...changes);
    for (const watcher of [...this.#watchers]) this.#tell(watcher);
  }

  /** The store has another past now. A watch that is resumed waits for its revision, which may be far ahead. */
  forget(): void {
    this.#log = [];
    for (const watcher of [...this.#watchers]) {
      this.#watchers.delete(watcher);
      this.#resume(watcher);
    }
  }

  watch(link: EtcdLink, request: WatchRequest, sink: (notice: WatchNotice) => void): () => void {
    const watcher: Watcher = { link, request, sink, next: request.startRevision, stopped: false };
    const stop = new AbortController();
    const arm = (): void => {
      if (watcher.stopped) return;
      this.#watchers.add(watcher);
      this.#tell(watcher);
    };
    // Arming takes a round trip; one that gets lost is tried again, like a stream that broke.
    link.call("watch", arm, stop.signal).catch(() => this.#resume(watcher));
    return () => {
      watcher.stopped = true;
      this.#watchers.delete(watcher);
      stop.abort();
    };
  }

  /** Tells what was not told yet. If that gets lost the stream is broken: nothing more comes before it is resumed. */
  #tell(watcher: Watcher): void {
    const { link } = watcher;
    if (!link.process.alive || watcher.stopped) return void this.#watchers.delete(watcher);
    const notice = this.#news(watcher);
    if (notice === undefined) {
      if (this.#watchers.has(watcher)) this.#told(watcher);
      return;
    }
    const told = link.notify(() => {
      if (!watcher.stopped) watcher.sink(notice);
    });
    if (!told && link.breaks()) {
      this.#watchers.delete(watcher);
      this.#resume(watcher);
    } else this.#told(watcher);
  }

  #told(watcher: Watcher): void {
    const next = this.#revision() + 1n;
    if (watcher.next === undefined || next > watcher.next) watcher.next = next;
  }

  #news({ request, next }: Watcher): WatchNotice | undefined {
    if (next === undefined) return { kind: "created", revision: this.#revision() };
    const events = this.#since(next).filter(
      ({ type, kv }) => within(kv.key, request) && request.skip !== `${type}s`,
    );
    return events.length === 0 ? undefined : { kind: "events", events };
  }

  /** What happened from this revision on. The log grows at its end alone: only that is looked at. */
  #since(revision: bigint): WatchEvent[] {
    let first = this.#log.length;
    while (first > 0 && this.#log[first - 1]!.kv.modRevision >= revision) first--;
    return this.#log.slice(first);
  }

  /** Half of the broken streams are noticed in a while; the others hang for good. */
  #resume(watcher: Watcher): void {
    if (watcher.stopped || !watcher.link.process.alive || watcher.link.coin()) return;
    this.#scheduler.quietly(this.#scheduler.now + this.#random.next() * RESUME_MS, () => {
      this.#watchers.add(watcher);
      this.#tell(watcher);
    });
  }
}

export function within(
  key: KeyValue["key"],
  { key: from, rangeEnd }: { readonly key: string; readonly rangeEnd?: string },
): boolean {
  return rangeEnd === undefined ? key === from : key >= from && key < rangeEnd;
}
