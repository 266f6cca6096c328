/**
 * Where records are written before they get their number: beside the records,
 * never among them, since many leftovers make a listing longer and less atomic.
 *
 * A draft that is a record now is replaced by an old record, to be written over:
 * to create a file and to remove it costs many times more, and waits for
 * the file system's journal.
 *
 * Leftovers of killed writers are swept by age. A writer slower than that finds
 * its draft gone when it comes to link it: it has certainly not written, throws,
 * and may try again. So sweeping can cost a sleeper one attempt, never a record.
 */
import { join } from "node:path";
import type { Clock } from "../../seam/clock.js";
import type { FileSystem } from "./fs.js";
import { errnoOf } from "../../files/numbered-links.js";
import { isLeftover, stagingName } from "./names.js";

/** Far beyond any write in progress. */
const LEFTOVER_MS = 60 * 60 * 1000;
/** Drafts are kept for so many writes at once; the rest is removed. */
const MOST_READY = 64;

/** A file that is no record, or not yet. */
export interface Draft {
  readonly path: string;
  /** By the monotonic clock. */
  readonly createdAt: number;
  /** Of its content, as it was written last. */
  readonly mark: string;
}

export class Staging {
  readonly #fs: FileSystem;
  readonly #clock: Clock;
  #sweptAt = -Infinity;
  #ready: Draft[] = [];
  #closed = false;

  constructor(fs: FileSystem, clock: Clock) {
    this.#fs = fs;
    this.#clock = clock;
  }

  /** Writes a draft. */
  async put(root: string, id: string, bytes: Uint8Array, durable: boolean): Promise<Draft> {
    const directory = join(root, "staging");
    await this.#sweep(directory);
    for (let draft = this.#ready.pop(); draft !== undefined; draft = this.#ready.pop()) {
      const mark = await this.#rewritten(draft, bytes, durable);
      if (mark !== null) return { ...draft, mark };
    }
    const path = join(directory, stagingName(this.#clock.wall(), id));
    return { path, createdAt: this.#clock.now(), mark: await this.#created(directory, path, bytes, durable) };
  }

  /** Not a record: to be written over by the next write. */
  async giveBack(draft: Draft): Promise<void> {
    // One that is nearly swept would be swept under a write.
    const old = this.#clock.now() - draft.createdAt > LEFTOVER_MS / 2;
    if (this.#closed || old || this.#ready.length >= MOST_READY) await this.drop(draft);
    else this.#ready.push(draft);
  }

  /** A record, or given up. What cannot be removed is swept one day. */
  async drop({ path }: Draft): Promise<void> {
    await this.#fs.remove(path).catch(() => {});
  }

  /** Removes the drafts that wait for a write. Those that come back later are removed then. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#ready.splice(0).map((draft) => this.drop(draft)));
  }

  async #rewritten(draft: Draft, bytes: Uint8Array, durable: boolean): Promise<string | null> {
    let mark: string | null = null;
    try {
      mark = await this.#fs.rewrite(draft.path, bytes, durable);
    } finally {
      if (mark === null) await this.drop(draft);
    }
    return mark;
  }

  async #created(directory: string, path: string, bytes: Uint8Array, durable: boolean): Promise<string> {
    try {
      return await this.#fs.create(path, bytes, durable);
    } catch (error) {
      if (errnoOf(error) !== "ENOENT") throw error;
      await this.#fs.makeDirectory(directory);
      return this.#fs.create(path, bytes, durable);
    }
  }

  /** At the first write and now and then. What cannot be swept is no reason for a write to fail. */
  async #sweep(directory: string): Promise<void> {
    if (this.#clock.now() - this.#sweptAt < LEFTOVER_MS) return;
    await this.#fs.makeDirectory(directory);
    this.#sweptAt = this.#clock.now();
    try {
      for (const name of await this.#fs.list(directory)) {
        if (isLeftover(name, this.#clock.wall(), LEFTOVER_MS)) await this.#fs.remove(join(directory, name));
      }
    } catch {
      // Writing will say what is wrong.
    }
  }
}
