/**
 * A store of versioned records with compare-and-swap: linearizable writes, reads
 * that may lag, a watch that may say nothing. With `ttlOf` it times leases by a
 * clock of its own, as a database does; without, it is as blind as a file.
 */
import type { CallOptions } from "../../seam/backend.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import { onAbort } from "../../kit/wait.js";
import type { Link } from "./network.js";
import { Oscillator } from "./oscillator.js";
import type { Scheduler } from "./scheduler.js";

interface Version<R> {
  readonly time: number;
  readonly version: bigint;
  readonly record: R;
  /** By the store's clock; `null` where the store does not time leases. */
  readonly expiresAt: number | null;
  /** How far the store's clock had been set when it was written. */
  readonly steppedMs: number;
}

/** An answer, and how far the store's clock was set forward since the record was written. */
interface Answer<R> {
  readonly entry: Entry<R>;
  readonly aheadMs: number;
}

interface Watcher<R> {
  readonly key: string;
  readonly link: Link;
  wake(entry?: Entry<R>): void;
  broke(): void;
}

export interface RecordServerOptions<R> {
  readonly scheduler: Scheduler;
  /** The store's own clock. */
  readonly oscillator: Oscillator;
  readonly firstVersion: bigint;
  /** Given, the store times leases: how long a record lives. */
  readonly ttlOf?: ((record: R) => number | null) | undefined;
  readonly watch: boolean;
  /** Whether a watch brings the new version with it. */
  readonly pushes?: boolean;
  /** Whether reads that do not lag say that they are current. */
  readonly vouches?: boolean;
  /** Whether reads may lag. Default: while the link is in that trouble. */
  readonly lags?: boolean;
  /** Told of every write that took effect. */
  readonly onWrite?: (key: string, version: bigint, record: R, process: string) => void;
}

/** How often a store can be wiped or restored without using a version twice. */
const MOST_LIVES = 16n;

/** All that a store knew at one moment. */
interface Snapshot<R> {
  readonly history: ReadonlyMap<string, readonly Version<R>[]>;
  readonly revision: bigint;
}

export class RecordServer<R> {
  readonly #options: RecordServerOptions<R>;
  readonly #watchers = new Set<Watcher<R>>();
  #history = new Map<string, Version<R>[]>();
  #revision: bigint;
  #highest: bigint;
  /** How often it was wiped or restored. */
  #lives = 0n;
  #steppedMs = 0;

  constructor(options: RecordServerOptions<R>) {
    this.#options = options;
    this.#revision = options.firstVersion * MOST_LIVES;
    this.#highest = this.#revision;
  }

  backUp(): Snapshot<R> {
    const history = new Map([...this.#history].map(([key, versions]) => [key, [...versions]]));
    return { history, revision: this.#revision };
  }

  /** The store goes back to an earlier state; without one it has forgotten everything. Leases are given their full time. */
  restore({ history, revision }: Snapshot<R> = { history: new Map(), revision: 0n }): void {
    const keys = new Set([...this.#history.keys(), ...history.keys()]);
    const timed = (each: Version<R>): Version<R> => ({ ...each, expiresAt: this.#expiry(each.record) });
    this.#history = new Map([...history].map(([key, versions]) => [key, versions.map(timed)]));
    // Versions are never used twice, as the contract has it, though they go back: every life counts in steps of its own.
    this.#lives++;
    this.#revision = revision - (revision % MOST_LIVES) + this.#lives;
    for (const key of keys) this.#tell(key);
  }

  /** An operator raises the versions above all there were. */
  raise(): void {
    while (this.#revision <= this.#highest) this.#revision += MOST_LIVES;
  }

  /** Somebody sets the store's clock. */
  step(byMs: number): void {
    this.#steppedMs += byMs;
  }

  /** Somebody who may write to the store writes this over what is there. */
  plant(key: string, make: (record: R | undefined) => R | undefined): bigint | undefined {
    const current = this.#history.get(key)?.at(-1);
    const record = make(current?.record);
    if (record === undefined) return undefined;
    return this.#write(key, current?.version ?? null, record, "somebody")?.entry.version;
  }

  /** The truth, as no process sees it. */
  current(key: string): R | undefined {
    return this.#history.get(key)?.at(-1)?.record;
  }

  /** The version of the truth. */
  version(key: string): bigint | undefined {
    return this.#history.get(key)?.at(-1)?.version;
  }

  /** The store as one process reaches it. */
  connect(link: Link): RecordStore<R> {
    const changes = new SeenChanges();
    const store: RecordStore<R> = {
      read: async (key, { signal }) => {
        const lag = this.#options.lags === false ? 0 : link.staleness();
        const answer = await link.call("read", () => this.#read(key, lag), signal);
        return answer && asTold(answer, changes.saw(key, answer.entry.version));
      },
      write: async (key, expected, record, { signal }) => {
        const write = (): Answer<R> | null => this.#write(key, expected, record, link.process.label);
        return (await link.call("write", write, signal))?.entry ?? null;
      },
      [Symbol.asyncDispose]: async () => {},
    };
    if (this.#options.watch) store.watch = (key, wake, options) => this.#watch(link, key, wake, options);
    return store;
  }

  #read(key: string, lagMs: number): Answer<R> | null {
    const history = this.#history.get(key) ?? [];
    const asOf = this.#options.scheduler.now - lagMs;
    for (let i = history.length - 1; i >= 0; i--) {
      const version = history[i];
      if (version === undefined || version.time > asOf) continue;
      const answer = this.#answer(version);
      if (this.#options.vouches !== true || lagMs > 0) return answer;
      return { ...answer, entry: { ...answer.entry, current: true } };
    }
    return null;
  }

  #write(key: string, expected: bigint | null, record: R, process: string): Answer<R> | null {
    const { scheduler, onWrite } = this.#options;
    const history = this.#history.get(key) ?? [];
    const current = history.at(-1);
    if ((current?.version ?? null) !== expected) return null;
    const expiresAt = this.#expiry(record);
    const number = (this.#revision += MOST_LIVES);
    const version = { time: scheduler.now, version: number, record, expiresAt, steppedMs: this.#steppedMs };
    if (this.#revision > this.#highest) this.#highest = this.#revision;
    history.push(version);
    this.#history.set(key, history);
    onWrite?.(key, version.version, record, process);
    this.#tell(key);
    return this.#answer(version);
  }

  #expiry(record: R): number | null {
    const { scheduler, oscillator, ttlOf } = this.#options;
    const ttlMs = ttlOf?.(record) ?? null;
    return ttlMs === null ? null : oscillator.mono(scheduler.now) + ttlMs;
  }

  #answer({ version, record, expiresAt, steppedMs }: Version<R>): Answer<R> {
    if (expiresAt === null) return { entry: { version, record }, aheadMs: 0 };
    const { scheduler, oscillator } = this.#options;
    const expiresInMs = expiresAt - oscillator.mono(scheduler.now);
    return { entry: { version, record, expiresInMs }, aheadMs: this.#steppedMs - steppedMs };
  }

  #watch(link: Link, key: string, wake: (entry?: Entry<R>) => void, { signal }: CallOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      const watcher: Watcher<R> = {
        key,
        link,
        wake: (entry) => void (signal.aborted || wake(entry)),
        broke: () => reject(new Error("the watch broke")),
      };
      onAbort(signal, () => {
        this.#watchers.delete(watcher);
        resolve();
      });
      // Arming takes a round trip: changes before it arrives are not told.
      link.call("watch", () => void this.#watchers.add(watcher), signal).catch(reject);
    });
  }

  #tell(key: string): void {
    const newest = this.#options.pushes === true ? this.#history.get(key)?.at(-1) : undefined;
    const entry = newest && { version: newest.version, record: newest.record };
    for (const watcher of [...this.#watchers]) {
      if (watcher.key !== key) continue;
      if (!watcher.link.process.alive) this.#watchers.delete(watcher);
      else if (!watcher.link.notify(() => watcher.wake(entry)) && watcher.link.breaks()) {
        // A stream cannot skip a message: it broke, and only sometimes is that noticed.
        this.#watchers.delete(watcher);
        if (watcher.link.coin()) watcher.link.notify(() => watcher.broke());
      }
    }
  }
}

/**
 * A clock that was set back is seen by everybody. One that was set forward is
 * seen only by those that saw the record change: a candidate that came later has
 * nothing but the store's word, and nothing is promised to it.
 */
function asTold<R>({ entry, aheadMs }: Answer<R>, sawChange: boolean): Entry<R> {
  if (entry.expiresInMs === undefined || (aheadMs > 0 && !sawChange)) return entry;
  return { ...entry, expiresInMs: entry.expiresInMs - aheadMs };
}

/** Which records a connection saw change to their present version, by the answers that reached it. */
class SeenChanges {
  readonly #seen = new Map<string, { readonly version: bigint; readonly changed: boolean }>();

  saw(key: string, version: bigint): boolean {
    const last = this.#seen.get(key);
    if (last?.version === version) return last.changed;
    const changed = last !== undefined && version > last.version;
    this.#seen.set(key, { version, changed });
    return changed;
  }
}
