/** Jute, ZooKeeper's serialisation: big-endian integers, and lengths before everything that has one. */

/** Data from a server that cannot be read. */
export class JuteError extends Error {}

export class JuteWriter {
  #parts: Buffer[] = [];

  bool(value: boolean): this {
    this.#parts.push(Buffer.from([value ? 1 : 0]));
    return this;
  }

  int(value: number): this {
    const part = Buffer.allocUnsafe(4);
    part.writeInt32BE(value);
    this.#parts.push(part);
    return this;
  }

  long(value: bigint): this {
    const part = Buffer.allocUnsafe(8);
    part.writeBigInt64BE(value);
    this.#parts.push(part);
    return this;
  }

  buffer(value: Uint8Array): this {
    this.int(value.length);
    this.#parts.push(Buffer.from(value));
    return this;
  }

  text(value: string): this {
    return this.buffer(Buffer.from(value));
  }

  /** As it goes on the wire: with its length in front. */
  frame(): Buffer {
    const length = this.#parts.reduce((sum, part) => sum + part.length, 0);
    const head = Buffer.allocUnsafe(4);
    head.writeInt32BE(length);
    return Buffer.concat([head, ...this.#parts]);
  }
}

/** Reads one frame. Every length is checked against what is there: it comes from elsewhere. */
export class JuteReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  bool(): boolean {
    const value = this.#take(1)[0];
    if (value !== 0 && value !== 1) throw new JuteError(`${value} is no boolean`);
    return value === 1;
  }

  int(): number {
    return this.#take(4).readInt32BE();
  }

  long(): bigint {
    return this.#take(8).readBigInt64BE();
  }

  /** `null` is written with the length -1, and means the same as nothing here. */
  buffer(): Buffer {
    const length = this.int();
    if (length < -1) throw new JuteError(`a length of ${length}`);
    return length === -1 ? Buffer.alloc(0) : this.#take(length);
  }

  /** UTF-8; what is none is replaced, since other programs may have written any bytes. */
  text(): string {
    return this.buffer().toString("utf8");
  }

  /** `least`: bytes that each element takes at the least. A count that cannot fit is refused before anything is made of it. */
  vector<T>(least: number, element: () => T): T[] {
    const count = this.int();
    if (count < -1 || count * least > this.left) throw new JuteError(`a vector of ${count} elements`);
    return Array.from({ length: Math.max(0, count) }, element);
  }

  #take(length: number): Buffer {
    if (length > this.left) throw new JuteError(`${length} bytes expected, ${this.left} left`);
    const from = this.#at;
    this.#at += length;
    return this.#bytes.subarray(from, this.#at);
  }
}
