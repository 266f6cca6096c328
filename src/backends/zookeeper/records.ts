/**
 * Small durable records by compare-and-swap, bound to no session: plain nodes.
 * Their version is the transaction that wrote them (mzxid); a write is guarded by
 * the node's own counter, read together with it.
 */
import { invalid } from "../../kit/errors.js";
import { onAbort } from "../../kit/wait.js";
import { listing, MOST_LISTED } from "../../kit/listing.js";
import type { CallOptions, Listing } from "../../seam/backend.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import type { CallLimits, ZooKeeperConnection } from "./client.js";
import { ERRNO, isErrno } from "./client/errors.js";
import { assertRoot, makeParents } from "./parents.js";
import { parentOf, type Paths } from "./paths.js";

const LIMIT_MS = 5_000;
/** ZooKeeper refuses requests of 1 MiB. */
const LARGEST_BYTES = 512 * 1024;

export class ZooKeeperRecords implements RecordStore {
  readonly #paths: Paths;
  readonly #connected: (limits: CallLimits) => Promise<ZooKeeperConnection>;

  constructor(paths: Paths, connected: (limits: CallLimits) => Promise<ZooKeeperConnection>) {
    this.#paths = paths;
    this.#connected = connected;
  }

  async read(name: string, { signal }: CallOptions): Promise<Entry | null> {
    const limits = { signal, limitMs: LIMIT_MS };
    const connection = await this.#connected(limits);
    const found = await connection.getData(this.#paths.record(name), limits);
    if (found === null) await assertRoot(connection, this.#paths.root, limits);
    return found === null ? null : { version: found.stat.mzxid, record: found.data };
  }

  async write(
    name: string,
    expected: bigint | null,
    record: string,
    { signal }: CallOptions,
  ): Promise<Entry | null> {
    const bytes = Buffer.byteLength(record);
    if (bytes > LARGEST_BYTES)
      throw invalid(`the record is ${bytes} bytes long; at most ${LARGEST_BYTES} fit into ZooKeeper`);
    const limits = { signal, limitMs: LIMIT_MS };
    const connection = await this.#connected(limits);
    const path = this.#paths.record(name);
    const version =
      expected === null
        ? await this.#create(connection, path, record, limits)
        : await replace(connection, path, expected, record, limits);
    return version === null ? null : { version, record };
  }

  /** Versions are numbers of transactions of the whole ensemble: whatever is written later has a higher one. */
  async remove(name: string, expected: bigint, { signal }: CallOptions): Promise<boolean> {
    const limits = { signal, limitMs: LIMIT_MS };
    const connection = await this.#connected(limits);
    const path = this.#paths.record(name);
    const found = await connection.getData(path, limits);
    if (found?.stat.mzxid !== expected) return false;
    try {
      return await connection.remove(path, limits, found.stat.version);
    } catch (error) {
      if (isErrno(error, ERRNO.badVersion)) return false;
      throw error;
    }
  }

  async list({ signal }: CallOptions): Promise<Listing> {
    const limits = { signal, limitMs: LIMIT_MS };
    const connection = await this.#connected(limits);
    const found = (await connection.getChildren(this.#paths.records, limits)) ?? [];
    const names = found.map((child) => this.#paths.recordOf(child)).filter((name) => name !== undefined);
    return listing(names.slice(0, MOST_LISTED), names.length <= MOST_LISTED);
  }

  async watch(name: string, wake: () => void, { signal }: CallOptions): Promise<void> {
    const path = this.#paths.record(name);
    const limits = { signal, limitMs: LIMIT_MS };
    while (!signal.aborted) {
      const connection = await this.#connected(limits);
      let changed = (): void => {};
      const change = new Promise<void>((resolve) => {
        changed = resolve;
      });
      await connection.exists(path, limits, changed);
      wake();
      const unlink = onAbort(signal, changed);
      await change;
      unlink();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  async #create(
    connection: ZooKeeperConnection,
    path: string,
    record: string,
    limits: CallLimits,
  ): Promise<bigint | null> {
    for (let attempt = 0; ; attempt++) {
      try {
        return (await connection.create(path, record, "persistent", limits)).stat.mzxid;
      } catch (error) {
        if (isErrno(error, ERRNO.nodeExists)) return null;
        if (!isErrno(error, ERRNO.noNode) || attempt > 0) throw error;
        await makeParents(connection, this.#paths, parentOf(path), false, limits);
      }
    }
  }
}

async function replace(
  connection: ZooKeeperConnection,
  path: string,
  expected: bigint,
  record: string,
  limits: CallLimits,
): Promise<bigint | null> {
  let found = await connection.getData(path, limits);
  if (found === null || found.stat.mzxid < expected) {
    // The server may be behind, which decides nothing. A transaction brings it up to date.
    await connection.check([path], limits);
    found = await connection.getData(path, limits);
  }
  if (found?.stat.mzxid !== expected) return null;
  try {
    return (await connection.setData(path, record, found.stat.version, limits)).mzxid;
  } catch (error) {
    if (isErrno(error, ERRNO.badVersion) || isErrno(error, ERRNO.noNode)) return null;
    throw error;
  }
}
