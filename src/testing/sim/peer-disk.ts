/** The disk of a simulated voter: writes take time, and one that a crash cuts short may leave any part of its bytes. */
import type { JournalDisk } from "../../backends/raft/journal.js";
import type { SimProcess } from "./node.js";
import type { Plan } from "./plan.js";
import type { Random } from "./random.js";

interface Writing {
  readonly process: SimProcess;
  readonly kind: "append" | "replace";
  readonly bytes: Uint8Array;
}

const SYNC_MEDIAN_MS = 3;
const SLOW = 0.03;

export class PeerDisk {
  #durable: Uint8Array | null = null;
  #writing: Writing | undefined;

  constructor(readonly random: Random) {}

  /** Everything is gone. */
  wipe(): void {
    this.#durable = null;
    this.#writing = undefined;
  }

  get empty(): boolean {
    return this.#durable === null;
  }

  open(process: SimProcess, { ttlMs, healAtMs }: Pick<Plan, "ttlMs" | "healAtMs">): JournalDisk {
    this.#crashed();
    const write = (kind: Writing["kind"], bytes: Uint8Array): Promise<void> =>
      new Promise((resolve) => {
        const writing = { process, kind, bytes: Uint8Array.from(bytes) };
        this.#writing = writing;
        const { scheduler } = process.node;
        const slow = this.random.next() < SLOW ? this.random.next() * ttlMs : 0;
        scheduler.at(
          scheduler.now + this.random.logNormal(SYNC_MEDIAN_MS, 0.7) + (scheduler.now < healAtMs ? slow : 0),
          () =>
            process.whenRunning(() => {
              if (!process.alive || this.#writing !== writing) return;
              this.#apply(writing, bytes.length);
              process.deliver(resolve);
            }),
        );
      });
    return {
      load: () => Promise.resolve(this.#durable),
      append: (bytes) => write("append", bytes),
      replace: (bytes) => write("replace", bytes),
      check: () => Promise.resolve(), // a simulated disk is one process's
      close: () => Promise.resolve(),
    };
  }

  /** The process that wrote is dead: a part of what it appended is there, or its file is the old or the new one. */
  #crashed(): void {
    const writing = this.#writing;
    if (writing === undefined) return;
    const roll = this.random.next();
    const length =
      writing.kind === "append"
        ? Math.floor(roll * (writing.bytes.length + 1))
        : roll < 0.5
          ? -1
          : writing.bytes.length;
    this.#apply(writing, length);
  }

  #apply({ kind, bytes }: Writing, length: number): void {
    this.#writing = undefined;
    if (length < 0) return;
    const before = kind === "append" && this.#durable !== null ? this.#durable : new Uint8Array();
    this.#durable = Buffer.concat([before, bytes.subarray(0, length)]);
  }
}
