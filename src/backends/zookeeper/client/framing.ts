/** Cuts the bytes of a connection into frames. */
import { JuteError } from "./jute.js";

/** What ZooKeeper itself accepts is a little below 1 MiB; servers may be set to more. */
export const LARGEST_FRAME = 4 * 1024 * 1024;

export class FrameReader {
  readonly #largest: number;
  #chunks: Buffer[] = [];
  #length = 0;
  #wanted: number | undefined;

  constructor(largest: number = LARGEST_FRAME) {
    this.#largest = largest;
  }

  /** The frames that are complete with these bytes. Throws a {@link JuteError} if a length cannot be right. */
  push(chunk: Buffer): Buffer[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    const frames: Buffer[] = [];
    for (;;) {
      if (this.#wanted === undefined) {
        if (this.#length < 4) return frames;
        this.#wanted = this.#take(4).readInt32BE();
        if (this.#wanted < 0 || this.#wanted > this.#largest)
          throw new JuteError(`a frame of ${this.#wanted} bytes; at most ${this.#largest} are read`);
      }
      if (this.#length < this.#wanted) return frames;
      frames.push(this.#take(this.#wanted));
      this.#wanted = undefined;
    }
  }

  /** Chunks are joined only when a frame is complete: a large one in small pieces is not copied again and again. */
  #take(length: number): Buffer {
    const [first] = this.#chunks;
    const all = this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks);
    this.#chunks = all.length > length ? [all.subarray(length)] : [];
    this.#length -= length;
    return all.subarray(0, length);
  }
}
