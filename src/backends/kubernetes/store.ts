/**
 * Leases as records: what client-go's rules say is in `lease.ts`, what the
 * engine asks for is here. While a watch is open and talking, reads are
 * answered from what it delivered: followers cost almost no requests. A record
 * so read may be stale, as the seam allows; every write is checked by the server
 * on the version that was read.
 */
import type { CallOptions } from "../../seam/backend.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import type { Clock } from "../../seam/clock.js";
import { isConclaveError } from "../../kit/errors.js";
import { onAbort } from "../../kit/wait.js";
import type { LeaseRecord } from "../../record/lease.js";
import { ExpiringMap } from "../../kit/expiring-map.js";
import type { Fields, LeaseObject } from "./lease.js";
import { checkLeaseName, renewalIdOf, nextLease, publishedTerm, recordOf, termKey } from "./lease.js";
import type { Leases } from "./leases.js";
import { leasePatch, sameRecord } from "./patch.js";
import { Watcher } from "./watcher.js";

/** What this process last learned of one Lease. */
interface Known {
  lease: LeaseObject | undefined;
  /** Monotonic time of learning it. */
  at: number;
  watcher: Watcher | undefined;
  /** A write on what was known was refused: whatever the watch delivers, the next read asks the server. */
  doubted: boolean;
  /** The term last seen and its token as far as it is known: published, else the lowest version it was seen at. */
  term: { readonly key: string; readonly version: bigint } | undefined;
}

/** A watch silent for this part of the lease is not relied on any more: a renewal should have come. */
const BELIEVED_SILENCE = 0.5;
const ASSUMED_TTL_MS = 15_000;
/** A Role without `patch` is not asked again for this long: updates do, unless someone edits the Lease all the time. */
const REFUSED_PATCH_MS = 30_000;

export class LeaseStore implements RecordStore<LeaseRecord> {
  readonly #clock: Clock;
  readonly #leases: Leases;
  readonly #known: ExpiringMap<Known>;
  #noPatchUntil = -Infinity;

  constructor(clock: Clock, leases: Leases) {
    this.#clock = clock;
    this.#leases = leases;
    this.#known = new ExpiringMap(clock, ({ watcher }) => watcher !== undefined);
  }

  async read(key: string, options: CallOptions): Promise<Entry<LeaseRecord> | null> {
    const known = this.#of(checkLeaseName(key));
    if (known.lease !== undefined && !known.doubted && this.#watched(known))
      return this.#entry(known, known.lease);
    const lease = await this.#fetch(key, known, options);
    return lease === null ? null : { ...this.#entry(known, lease), current: true };
  }

  async write(
    key: string,
    expected: bigint | null,
    record: LeaseRecord,
    options: CallOptions,
  ): Promise<Entry<LeaseRecord> | null> {
    const known = this.#of(checkLeaseName(key));
    const base = await this.#base(key, known, expected, options);
    if (base === undefined) return null;
    const written =
      base === null
        ? await this.#leases.create(key, this.#next(key, null, record), options)
        : await this.#replace(key, known, base, record, options);
    if (written === null) {
      known.doubted = true;
      return null;
    }
    this.#learn(known, written);
    return this.#entry(known, written);
  }

  /** By the server's own version and uid. They go on rising over a removal: they are those of the cluster's store. */
  async remove(key: string, expected: bigint, options: CallOptions): Promise<boolean> {
    const known = this.#of(checkLeaseName(key));
    const lease = await this.#fetch(key, known, options);
    if (lease === null || lease.version !== expected) return false;
    return this.#leases.remove(key, lease, options);
  }

  watch(key: string, wake: () => void, { signal }: CallOptions): Promise<void> {
    const known = this.#of(checkLeaseName(key));
    known.watcher ??= new Watcher(this.#clock, this.#leases, key, {
      present: (lease) => this.#learn(known, lease),
      absent: () => {
        known.lease = undefined;
      },
      known: () => known.lease?.version,
    });
    const { watcher } = known;
    const unsubscribe = watcher.subscribe(wake);
    return new Promise((resolve) => {
      onAbort(signal, () => {
        unsubscribe();
        if (watcher.subscribers === 0) {
          watcher.stop();
          if (known.watcher === watcher) known.watcher = undefined;
        }
        resolve();
      });
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    for (const known of this.#known.values()) known.watcher?.stop();
    this.#known.clear();
    return Promise.resolve();
  }

  #of(key: string): Known {
    let known = this.#known.get(key);
    if (known === undefined) {
      known = { lease: undefined, at: -Infinity, watcher: undefined, doubted: false, term: undefined };
      this.#known.set(key, known);
    }
    return known;
  }

  /** Whether the watch would have reported a change of the Lease by now. */
  #watched({ watcher, lease }: Known): boolean {
    const silent = watcher?.silentMs;
    if (silent === undefined || lease === undefined) return false;
    return silent < BELIEVED_SILENCE * (recordOf(lease, null).ttlMs ?? ASSUMED_TTL_MS);
  }

  #next(name: string, base: LeaseObject | null, record: LeaseRecord): Fields {
    return nextLease(base, { namespace: this.#leases.namespace, name }, record, this.#clock.wall());
  }

  /**
   * Writes on `base`, or on a later version with the same record: the version
   * also moves when someone edits a label. Goes on for as long as it moves and
   * the call lasts. `null`: the record is another one, or the Lease is gone.
   */
  async #replace(
    key: string,
    known: Known,
    base: LeaseObject,
    record: LeaseRecord,
    options: CallOptions,
  ): Promise<LeaseObject | null> {
    let written = await this.#leases.update(key, this.#next(key, base, record), options);
    for (let current = base; written === null;) {
      options.signal.throwIfAborted();
      const found = await this.#fetch(key, known, options);
      if (found === null || found.version === current.version || !sameRecord(base, found)) return null;
      current = found;
      const body = this.#next(key, current, record);
      written = await this.#patch(key, current, body, options);
    }
    return written;
  }

  /** By a patch where that is allowed and possible, else by another update. */
  async #patch(
    key: string,
    base: LeaseObject,
    body: Fields,
    options: CallOptions,
  ): Promise<LeaseObject | null> {
    const steps = this.#clock.now() < this.#noPatchUntil ? undefined : leasePatch(base, body);
    if (steps === undefined) return this.#leases.update(key, body, options);
    try {
      return await this.#leases.patch(key, steps, options);
    } catch (error) {
      if (!isConclaveError(error) || error.code !== "forbidden") throw error;
      this.#noPatchUntil = this.#clock.now() + REFUSED_PATCH_MS;
      return this.#leases.update(key, body, options);
    }
  }

  /** The object to write on; `null` to create; `undefined` if `expected` is not current any more. */
  async #base(
    key: string,
    known: Known,
    expected: bigint | null,
    options: CallOptions,
  ): Promise<LeaseObject | null | undefined> {
    if (expected === null) return null;
    if (known.lease?.version === expected) return known.lease;
    const lease = await this.#fetch(key, known, options);
    return lease?.version === expected ? lease : undefined;
  }

  async #fetch(key: string, known: Known, options: CallOptions): Promise<LeaseObject | null> {
    const askedAt = this.#clock.now();
    const lease = await this.#leases.get(key, options);
    known.doubted = false;
    // What the watch delivered after we asked may be newer than the answer.
    if (
      known.lease !== undefined &&
      known.at >= askedAt &&
      (lease === null || lease.version < known.lease.version)
    )
      return known.lease;
    if (lease === null) {
      known.lease = undefined;
      return null;
    }
    known.watcher?.compare(lease.version);
    known.lease = undefined; // a read through the quorum outranks memory, even if the store was restored to an older state
    this.#learn(known, lease);
    return lease;
  }

  #learn(known: Known, lease: LeaseObject): void {
    const key = termKey(lease);
    const older = known.lease !== undefined && lease.version < known.lease.version;
    // A published token is exact, and stays known if someone removes the annotation that published it.
    const version = publishedTerm(lease)?.token ?? lease.version;
    // The watch may be faster than the answer to the write that began the term: an older sighting still counts.
    if (known.term?.key === key ? version < known.term.version : !older) known.term = { key, version };
    if (older) return;
    known.lease = lease;
    known.at = this.#clock.now();
  }

  /** A term whose token nobody published is known by the version it was first seen at. */
  #entry(known: Known, lease: LeaseObject): Entry<LeaseRecord> {
    const first = known.term?.key === termKey(lease) ? known.term.version : lease.version;
    return { version: lease.version, record: recordOf(lease, first), renewalId: renewalIdOf(lease) };
  }
}
