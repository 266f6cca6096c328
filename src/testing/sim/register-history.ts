/**
 * Whether records behave as one register each: an exact check of linearizability
 * for compare-and-swap with versions. Every write that took effect has a version
 * of its own and names the version it replaced, so there is only one order that
 * could explain them; what is left to check is that this order exists, that
 * versions rise along it, and that it agrees with real time.
 */
import type { Entry } from "../../seam/table.js";
import type { Monitor } from "./monitor.js";

/** A call that was made. */
export interface Call {
  readonly key: string;
  /** The newest version that was known to somebody before this call was made. */
  readonly floor: bigint;
  readonly started: number;
}

interface Register {
  floor: bigint;
  /** Which version replaced which. */
  readonly next: Map<bigint, bigint>;
  /** Texts are written once: what each was written on, and its version, once that is known. */
  readonly texts: Map<string, { readonly base: bigint; version?: bigint }>;
  /** Refusals: from when on the expected version had certainly not been the newest. */
  readonly refused: Map<bigint, number>;
}

/** No record. */
const NONE = -1n;

export class RegisterHistory {
  readonly #registers = new Map<string, Register>();
  #calls = 0;

  constructor(readonly monitor: Monitor) {}

  /** All disks are lost, and every process was killed: records begin anew. */
  begin(): void {
    for (const [key, { texts }] of this.#registers) {
      const forgotten = new Map([...texts].map(([text, { base }]) => [text, { base }]));
      this.#registers.set(key, { floor: NONE, next: new Map(), texts: forgotten, refused: new Map() });
    }
  }

  read(key: string): Call {
    return { key, floor: this.#of(key).floor, started: ++this.#calls };
  }

  write(key: string, expected: bigint | null, text: string): Call {
    this.#of(key).texts.set(text, { base: expected ?? NONE });
    return this.read(key);
  }

  /** A read was answered. */
  was({ key, floor }: Call, entry: Entry | null): void {
    const version = entry?.version ?? NONE;
    if (version < floor) this.#wrong(key, `a read gave ${version} after ${floor} had been known`);
    if (entry !== null) this.#exists(key, entry);
  }

  /** A write took effect. */
  done({ key, floor, started }: Call, expected: bigint | null, entry: Entry): void {
    const base = expected ?? NONE;
    if (base < floor) this.#wrong(key, `a write on ${base} succeeded after ${floor} had been known`);
    if ((this.#of(key).refused.get(base) ?? Infinity) < started)
      this.#wrong(key, `a write on ${base} succeeded after another one had been refused on it`);
    this.#exists(key, entry);
  }

  /** A write was refused: at some time meanwhile another version was the newest. */
  refused({ key, floor }: Call, expected: bigint | null): void {
    const base = expected ?? NONE;
    // If it was not yet the newest at the beginning, it may have become so since.
    if (base > floor) return;
    const { refused } = this.#of(key);
    if (!refused.has(base)) refused.set(base, this.#calls);
  }

  #exists(key: string, { version, record }: Entry): void {
    const register = this.#of(key);
    const written = register.texts.get(record);
    if (written === undefined) return this.#wrong(key, `"${record}" was never written`);
    if (written.version !== undefined && written.version !== version)
      this.#wrong(key, `"${record}" has two versions, ${written.version} and ${version}`);
    written.version = version;
    if (version <= written.base) this.#wrong(key, `version ${version} replaced ${written.base}`);
    const other = register.next.get(written.base);
    if (other !== undefined && other !== version)
      this.#wrong(key, `${written.base} was replaced by ${other} and by ${version}`);
    register.next.set(written.base, version);
    if (version > register.floor) register.floor = version;
  }

  #of(key: string): Register {
    const known = this.#registers.get(key);
    if (known !== undefined) return known;
    const made = { floor: NONE, next: new Map(), texts: new Map(), refused: new Map() };
    this.#registers.set(key, made);
    return made;
  }

  #wrong(key: string, what: string): void {
    this.monitor.violate("register", `${key}: ${what}`);
  }
}
