/**
 * Just enough protocol buffers for etcd: varints and length-delimited fields.
 * int64 is `bigint`; unknown fields are skipped; a message that ends in the
 * middle of a field is an error, never a guess.
 *
 * Both sides work on one stretch of bytes, without a copy for each level: what
 * they do lies between the end of one leadership and the begin of the next.
 */

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** Most messages fit at once. */
const FIRST_BYTES = 128;
const LONGEST_VARINT = 10;
/** 49 bits: what a number holds exactly. */
const SMALL_BYTES = 7;

export class Writer {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  #at = 0;

  /** int64, uint64, enum. Zero is the default and is not sent. */
  int(field: number, value: bigint | number | undefined): this {
    if (value === undefined || value === 0 || value === 0n) return this;
    this.#room(2 * LONGEST_VARINT);
    this.#varint(field * 8 + VARINT);
    if (typeof value === "number") this.#varint(value);
    else this.#bigVarint(BigInt.asUintN(64, value));
    return this;
  }

  bool(field: number, value: boolean | undefined): this {
    return this.int(field, value === true ? 1 : 0);
  }

  text(field: number, value: string | undefined): this {
    if (value === undefined || value === "") return this;
    const length = Buffer.byteLength(value);
    this.#begin(field, length);
    this.#at += this.#bytes.write(value, this.#at);
    return this;
  }

  /** Sent even if empty: an empty message inside a message means something. */
  bytes(field: number, value: Uint8Array): this {
    this.#begin(field, value.length);
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
    return this;
  }

  /** A message within the message: what `write` writes. Sent even if it writes nothing. */
  message(field: number, write: (writer: this) => void): this {
    this.#begin(field, 0);
    const from = this.#at;
    write(this);
    const length = this.#at - from;
    if (length === 0) return this;
    // One byte was kept for the length, enough for nearly all; else the message moves up.
    const extra = varintBytes(length) - 1;
    this.#room(extra);
    if (extra > 0) this.#bytes.copyWithin(from + extra, from, this.#at);
    this.#at = from - 1;
    this.#varint(length);
    this.#at += length;
    return this;
  }

  /** What was written so far. Valid until the next write. */
  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }

  #begin(field: number, length: number): void {
    this.#room(2 * LONGEST_VARINT + length);
    this.#varint(field * 8 + BYTES);
    this.#varint(length);
  }

  #room(length: number): void {
    if (this.#at + length <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * this.#bytes.length + length);
    larger.set(this.finish());
    this.#bytes = larger;
  }

  #varint(value: number): void {
    let rest = value;
    while (rest >= 0x80) {
      this.#bytes[this.#at++] = (rest % 0x80) + 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#bytes[this.#at++] = rest;
  }

  #bigVarint(value: bigint): void {
    if (value <= Number.MAX_SAFE_INTEGER) return this.#varint(Number(value));
    let rest = value;
    while (rest >= 0x80n) {
      this.#bytes[this.#at++] = Number(rest & 0x7fn) + 0x80;
      rest >>= 7n;
    }
    this.#bytes[this.#at++] = Number(rest);
  }
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes++;
  return bytes;
}

/** Goes through the fields of a message: {@link next}, then look at {@link number} and the value. */
export class Fields {
  /** Which field this is. */
  number = 0;
  readonly #message: Buffer;
  readonly #end: number;
  #at: number;
  /** A varint's value, if it is small; else in `#large`. */
  #small = 0;
  #large: bigint | undefined;
  /** Where the bytes of a length-delimited field begin; they end at `#at`. */
  #begin = 0;

  constructor(message: Uint8Array) {
    this.#message = asBuffer(message);
    this.#at = 0;
    this.#end = message.length;
  }

  /** Goes on to the next field that can be read; `false` at the end. */
  next(): boolean {
    while (this.#at < this.#end) {
      this.#varint();
      const tag = this.#small;
      this.number = Math.floor(tag / 8);
      this.#begin = this.#at;
      switch (this.#large === undefined ? tag % 8 : -1) {
        case VARINT:
          this.#varint();
          this.#begin = this.#at;
          return true;
        case BYTES:
          this.#varint();
          this.#begin = this.#at;
          this.#skip(this.#large === undefined ? this.#small : Infinity);
          this.#small = 0;
          this.#large = undefined;
          return true;
        case FIXED64:
          this.#skip(8);
          break;
        case FIXED32:
          this.#skip(4);
          break;
        default:
          throw new RangeError("not a protocol buffer message: unknown wire type");
      }
    }
    return false;
  }

  /** uint64. */
  get uint(): bigint {
    return this.#large ?? BigInt(this.#small);
  }

  /** int64. */
  get int(): bigint {
    return this.#large === undefined ? BigInt(this.#small) : BigInt.asIntN(64, this.#large);
  }

  get bool(): boolean {
    return this.uint !== 0n;
  }

  get text(): string {
    return this.#message.toString("utf8", this.#begin, this.#at);
  }

  get bytes(): Uint8Array {
    return this.#message.subarray(this.#begin, this.#at);
  }

  #varint(): void {
    this.#large = undefined;
    this.#small = 0;
    for (let i = 0, scale = 1; i < SMALL_BYTES; i++, scale *= 0x80) {
      const byte = this.#byte();
      this.#small += (byte & 0x7f) * scale;
      if (byte < 0x80) return;
    }
    let value = BigInt(this.#small);
    for (let i = SMALL_BYTES; i < LONGEST_VARINT; i++) {
      const byte = this.#byte();
      value |= BigInt(byte & 0x7f) << BigInt(7 * i);
      this.#large = BigInt.asUintN(64, value);
      if (byte < 0x80) return;
    }
    throw new RangeError("not a protocol buffer message: varint too long");
  }

  #skip(length: number): void {
    if (this.#at + length > this.#end)
      throw new RangeError("not a protocol buffer message: it ends inside a field");
    this.#at += length;
  }

  #byte(): number {
    if (this.#at >= this.#end) throw new RangeError("not a protocol buffer message: it ends inside a number");
    return this.#message[this.#at++]!;
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
