/** What a backend of the record engine is made of. */
import type { Clock } from "../seam/clock.js";
import type { RecordStore } from "../seam/table.js";
import type { TimingDefaults, Guarantees } from "../seam/backend.js";
import type { LeaseRecord } from "./lease.js";

/** What {@link recordBackend} takes. */
export interface RecordBackendOptions {
  readonly name: string;
  readonly guarantees: Guarantees;
  readonly leases: RecordStore<LeaseRecord>;
  /** Durable records bound to no lease (see {@link Backend.records}). */
  readonly records: RecordStore;
  /**
   * Called once when the backend is closed, after both stores were: the place to
   * close a client that they share and that this backend has opened itself. A
   * client that was handed in belongs to whoever made it.
   */
  readonly close?: () => Promise<void>;
  readonly timing?: TimingDefaults;
  readonly clock?: Clock;
  /**
   * The store never gives one version to two writes, even after it has lost its
   * memory: versions that follow its clock, for example. A candidate that gave its
   * leadership back then stands again on the version it wrote, without reading it
   * first. Default: not so.
   */
  readonly uniqueVersions?: boolean;
  /** A wake-up that many see is answered after a random part of this, so that not all write at once. */
  readonly wakeJitterMs?: number;
  /** See {@link Backend.onWarning}. */
  readonly onWarning?: (listener: (message: string) => void) => void;
  /** Polls come every `retryMs` x [1, 1 + pollJitter). */
  readonly pollJitter?: number;
}
