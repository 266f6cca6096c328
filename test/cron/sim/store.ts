/** A linearizable store at the other end of a network that delays, loses and cuts off. */
import { ConclaveError } from "../../../src/core/errors.js";
import type { Backend, Entry, RecordStore } from "../../../src/core/backend.js";
import { recordBackend } from "../../../src/record/backend.js";
import { textLeases } from "../../../src/record/codec.js";
import type { VirtualNode, VirtualTime } from "./time.js";

export class VirtualStore {
  /** Nobody gets through. */
  cut = false;
  /** Told of every record that was written. */
  wrote: (key: string, record: string) => void = () => {};
  readonly #entries = new Map<string, Entry>();
  readonly #time: VirtualTime;
  #version = 0n;

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  backend(node: VirtualNode): Backend {
    return recordBackend({
      name: "virtual",
      guarantees: {
        exclusion: "linearizable",
        expiry: "observer",
        token: "record",
        succession: "unordered",
        ttl: { minMs: 100, stepMs: 1 },
      },
      leases: textLeases(this.#door(node, "lease:")),
      records: this.#door(node, "record:"),
      clock: node.clock,
    });
  }

  #door(node: VirtualNode, shelf: string): RecordStore {
    return {
      read: (key) => this.#call(node, () => this.#entries.get(shelf + key) ?? null),
      write: (key, expected, record) => this.#call(node, () => this.#write(shelf + key, expected, record)),
      [Symbol.asyncDispose]: async () => {},
    };
  }

  #write(key: string, expected: bigint | null, record: string): Entry | null {
    if ((this.#entries.get(key)?.version ?? null) !== expected) return null;
    const entry = { version: ++this.#version, record };
    this.#entries.set(key, entry);
    this.wrote(key, record);
    return entry;
  }

  /** Request and answer each take their time; while cut, either is lost, and the caller hears of neither. */
  #call<T>(node: VirtualNode, apply: () => T): Promise<T> {
    const { random } = this.#time;
    const lost = new ConclaveError("unavailable", "cut off");
    return new Promise((resolve, reject) => {
      const answer = (settle: () => void): void => {
        this.#time.after(latency(random), () => node.deliver(settle));
      };
      this.#time.after(latency(random), () => {
        if (this.cut && random() < 0.5) return answer(() => reject(lost));
        const result = apply();
        answer(() => (this.cut ? reject(lost) : resolve(result)));
      });
    });
  }
}

/** Mostly a few milliseconds, now and then a good part of a second. */
function latency(random: () => number): number {
  return random() < 0.05 ? random() * 400 : 1 + random() * 8;
}
