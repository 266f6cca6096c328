/** Records by compare-and-swap, by the registers of the voters. */
import { ConclaveError, invalid } from "../../kit/errors.js";
import { untilAborted } from "../../kit/wait.js";
import type { CallOptions } from "../../seam/backend.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import type { EntryAnswer, ReadRequest, WriteRequest } from "./node-messages.js";

/** Longest record: it travels in one frame, with room for what JSON escapes. */
const LONGEST_BYTES = 32 * 1024;
const LIMIT_MS = 5_000;

/** Hands a request to a voter that takes part, its own if it has one. Rejects = not known what became of it. */
export type Carry = (request: ReadRequest | WriteRequest, limitMs: number) => Promise<EntryAnswer>;

export class RaftRecords implements RecordStore {
  readonly #carry: Carry;

  constructor(carry: Carry) {
    this.#carry = carry;
  }

  async read(key: string, { signal }: CallOptions): Promise<Entry | null> {
    signal.throwIfAborted();
    return entryOf(await untilAborted(signal, this.#carry({ kind: "read", key }, LIMIT_MS)));
  }

  async write(
    key: string,
    expected: bigint | null,
    record: string,
    { signal }: CallOptions,
  ): Promise<Entry | null> {
    signal.throwIfAborted();
    const bytes = Buffer.byteLength(JSON.stringify(record));
    if (bytes > LONGEST_BYTES)
      throw invalid(`a record of ${bytes} bytes is too long for peers; at most ${LONGEST_BYTES} fit`);
    const request = { kind: "write", key, expected, text: record } as const;
    return entryOf(await untilAborted(signal, this.#carry(request, LIMIT_MS)));
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

function entryOf({ entry, unfit, unknown }: EntryAnswer): Entry | null {
  const why = unfit ?? unknown;
  if (why !== undefined) throw new ConclaveError("unavailable", why);
  return entry === null ? null : { version: entry.version, record: entry.text };
}
