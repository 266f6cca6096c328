/**
 * Small durable records (cron runs, fences) kept in annotations of Leases that
 * nobody holds: the service account needs no permission beyond leases. The
 * object's name is a digest of the key, since keys may be any text.
 */
import { createHash } from "node:crypto";
import { listing, MOST_LISTED } from "../../kit/listing.js";
import type { CallOptions, Listing } from "../../seam/backend.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import type { Clock } from "../../seam/clock.js";
import { ConclaveError, invalid } from "../../kit/errors.js";
import type { Fields, LeaseObject } from "./lease.js";
import { fields } from "./lease.js";
import type { Leases } from "./leases.js";

const KEY_ANNOTATION = "conclave/key";
const RECORD_ANNOTATION = "conclave/record";
/** Differs in every write: an update that changes nothing would get no new version. */
const WRITE_ANNOTATION = "conclave/write";
/** All annotations of an object together must stay below 256 KiB. */
const LARGEST_RECORD = 200 * 1024;

/** Whether a Lease holds such a record. It is no election. */
export function isRecordLease(annotations: Fields): boolean {
  return annotations[KEY_ANNOTATION] !== undefined;
}

export class RecordLeases implements RecordStore {
  readonly #clock: Clock;
  readonly #leases: Leases;

  constructor(clock: Clock, leases: Leases) {
    this.#clock = clock;
    this.#leases = leases;
  }

  async read(key: string, options: CallOptions): Promise<Entry | null> {
    const lease = await this.#leases.get(objectName(key), options);
    return lease === null ? null : { version: lease.version, record: recordOf(key, lease) };
  }

  async write(
    key: string,
    expected: bigint | null,
    record: string,
    options: CallOptions,
  ): Promise<Entry | null> {
    if (Buffer.byteLength(record) > LARGEST_RECORD)
      throw invalid(`a record in Kubernetes holds at most ${LARGEST_RECORD} bytes`);
    const name = objectName(key);
    const annotations = {
      [KEY_ANNOTATION]: key,
      [RECORD_ANNOTATION]: record,
      [WRITE_ANNOTATION]: this.#clock.uniqueId(),
    };
    const written =
      expected === null
        ? await this.#leases.create(name, this.#first(name, annotations), options)
        : await this.#replace(key, expected, annotations, options);
    return written === null ? null : { version: written.version, record };
  }

  async remove(key: string, expected: bigint, options: CallOptions): Promise<boolean> {
    const name = objectName(key);
    const lease = await this.#leases.get(name, options);
    if (lease === null || lease.version !== expected) return false;
    recordOf(key, lease);
    return this.#leases.remove(name, lease, options);
  }

  async list(options: CallOptions): Promise<Listing> {
    const keys: string[] = [];
    let next: string | undefined;
    do {
      const page = await this.#leases.list(next, options);
      for (const lease of page.leases) {
        const key = fields(fields(lease["metadata"])["annotations"])[KEY_ANNOTATION];
        if (typeof key === "string") keys.push(key);
      }
      ({ next } = page);
    } while (next !== undefined && keys.length < MOST_LISTED);
    return listing(keys, next === undefined);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }

  #first(name: string, annotations: Fields): Fields {
    return {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { namespace: this.#leases.namespace, name, annotations },
      spec: {},
    };
  }

  async #replace(
    key: string,
    expected: bigint,
    annotations: Fields,
    options: CallOptions,
  ): Promise<LeaseObject | null> {
    const name = objectName(key);
    const lease = await this.#leases.get(name, options);
    if (lease === null || lease.version !== expected) return null;
    recordOf(key, lease);
    const metadata = {
      ...lease.metadata,
      annotations: { ...fields(lease.metadata["annotations"]), ...annotations },
    };
    return this.#leases.update(
      name,
      { ...lease.raw, apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata },
      options,
    );
  }
}

function objectName(key: string): string {
  return `conclave-record-${createHash("sha256").update(key).digest("hex").slice(0, 40)}`;
}

function recordOf(key: string, lease: LeaseObject): string {
  const annotations = fields(lease.metadata["annotations"]);
  const text = annotations[RECORD_ANNOTATION];
  if (annotations[KEY_ANNOTATION] === key && typeof text === "string") return text;
  throw new ConclaveError(
    "conflict",
    `the Lease ${objectName(key)} does not hold the record "${key}"; it was left alone: delete it if nobody needs it`,
  );
}
