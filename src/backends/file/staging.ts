/**
 * Where records are written before they get their number: beside the records,
 * never among them, since many leftovers make a listing longer and less atomic.
 *
 * Leftovers of killed writers are swept by age. A writer slower than that finds
 * its temp file gone when it comes to link it: it has certainly not written,
 * throws, and may try again. So sweeping can cost a sleeper one attempt, never a
 * record.
 */
import { join } from "node:path";
import type { Clock } from "../../seam/clock.js";
import type { FileSystem } from "./fs.js";
import { errnoOf } from "../../files/numbered-links.js";
import { isLeftover, stagingName } from "./names.js";

/** Far beyond any write in progress. */
const LEFTOVER_MS = 60 * 60 * 1000;

export class Staging {
  readonly #fs: FileSystem;
  readonly #clock: Clock;
  #sweptAt = -Infinity;

  constructor(fs: FileSystem, clock: Clock) {
    this.#fs = fs;
    this.#clock = clock;
  }

  /** Writes a temp file and says where. */
  async put(root: string, id: string, bytes: Uint8Array, durable: boolean): Promise<string> {
    const directory = join(root, "staging");
    await this.#sweep(directory);
    const path = join(directory, stagingName(this.#clock.wall(), id));
    try {
      await this.#fs.create(path, bytes, durable);
    } catch (error) {
      if (errnoOf(error) !== "ENOENT") throw error;
      await this.#fs.makeDirectory(directory);
      await this.#fs.create(path, bytes, durable);
    }
    return path;
  }

  /** Linked or given up. What cannot be removed is swept one day. */
  async drop(path: string): Promise<void> {
    await this.#fs.remove(path).catch(() => {});
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
