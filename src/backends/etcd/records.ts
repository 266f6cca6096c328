/** Small durable records by compare-and-swap, bound to no lease. The version is etcd's mod revision. */
import type { CallOptions, Listing } from "../../seam/backend.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import { onAbort } from "../../kit/wait.js";
import type { EtcdClient } from "./client.js";
import type { Keys } from "./keys.js";
import { listKeys } from "./list.js";

const LIMIT_MS = 5_000;

export class EtcdRecords implements RecordStore {
  readonly #client: EtcdClient;
  readonly #keys: Keys;

  constructor(client: EtcdClient, keys: Keys) {
    this.#client = client;
    this.#keys = keys;
  }

  async read(name: string, { signal }: CallOptions): Promise<Entry | null> {
    const key = this.#keys.record(name);
    const answer = await this.#client.transaction(
      { when: [], then: [{ kind: "range", key }], otherwise: [] },
      { signal, limitMs: LIMIT_MS },
    );
    const kv = answer.results[0]?.kvs[0];
    return kv === undefined ? null : { version: kv.modRevision, record: kv.value };
  }

  async write(
    name: string,
    expected: bigint | null,
    record: string,
    { signal }: CallOptions,
  ): Promise<Entry | null> {
    const key = this.#keys.record(name);
    const answer = await this.#client.transaction(
      {
        when: [{ target: "mod", key, value: expected ?? 0n }],
        then: [{ kind: "put", key, value: record }],
        otherwise: [],
      },
      { signal, limitMs: LIMIT_MS },
    );
    return answer.succeeded ? { version: answer.revision, record } : null;
  }

  /** A revision is never given twice, so that whatever is written later has a higher version. */
  async remove(name: string, expected: bigint, { signal }: CallOptions): Promise<boolean> {
    const key = this.#keys.record(name);
    const answer = await this.#client.transaction(
      { when: [{ target: "mod", key, value: expected }], then: [{ kind: "delete", key }], otherwise: [] },
      { signal, limitMs: LIMIT_MS },
    );
    return answer.succeeded;
  }

  async list({ signal }: CallOptions): Promise<Listing> {
    const range = this.#keys.records();
    const nameOf = (key: string): string => key.slice(range.key.length);
    return listKeys(this.#client, range, (kv) => nameOf(kv.key), { signal, limitMs: LIMIT_MS });
  }

  async watch(name: string, wake: () => void, { signal }: CallOptions): Promise<void> {
    const key = this.#keys.record(name);
    const answer = await this.#client.transaction(
      { when: [], then: [{ kind: "range", key, keysOnly: true }], otherwise: [] },
      { signal, limitMs: LIMIT_MS },
    );
    wake();
    await new Promise<void>((resolve) => {
      let unwatch = (): void => {};
      const follow = (startRevision: bigint): void => {
        unwatch = this.#client.watch({ key, startRevision }, (notice) => {
          wake();
          if (notice.kind === "compacted") follow(notice.revision + 1n);
          else if (notice.kind === "failed") resolve();
        });
      };
      follow(answer.revision + 1n);
      onAbort(signal, () => {
        unwatch();
        resolve();
      });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
