/**
 * Just enough protocol buffers for etcd: varints and length-delimited fields.
 * int64 is `bigint`; unknown fields are skipped; a message that ends in the
 * middle of a field is an error, never a guess.
 */

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

export class Writer {
  readonly #parts: number[] = [];

  /** int64, uint64, enum. Zero is the default and is not sent. */
  int(field: number, value: bigint | number | undefined): this {
    if (value === undefined || BigInt(value) === 0n) return this;
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
    return this.bytes(field, encoder.encode(value));
  }

  /** Sent even if empty: an empty message inside a message means something. */
  bytes(field: number, value: Uint8Array): this {
    this.#varint(field * 8 + BYTES);
    this.#varint(value.length);
    for (const byte of value) this.#parts.push(byte);
    return this;
  }

  message(field: number, message: Writer): this {
    return this.bytes(field, message.finish());
  }

  finish(): Uint8Array {
    return Uint8Array.from(this.#parts);
  }

  #varint(value: number): void {
    let rest = value;
    while (rest >= 0x80) {
      this.#parts.push((rest % 0x80) + 0x80);
      rest = Math.floor(rest / 0x80);
    }
    this.#parts.push(rest);
  }

  #bigVarint(value: bigint): void {
    if (value <= 0xffff_ffffn) return this.#varint(Number(value));
    let rest = value;
    while (rest >= 0x80n) {
      this.#parts.push(Number(rest & 0x7fn) + 0x80);
      rest >>= 7n;
    }
    this.#parts.push(Number(rest));
  }
}

/** One field, as found: a number for varints, bytes for everything length-delimited. */
export interface Field {
  readonly number: number;
  readonly int: bigint;
  readonly bytes: Uint8Array;
}

const NO_BYTES = new Uint8Array();

export function* fields(message: Uint8Array): Generator<Field> {
  const reader = new Reader(message);
  while (!reader.done) {
    const tag = reader.varint();
    const number = Number(tag >> 3n);
    switch (Number(tag & 7n)) {
      case VARINT:
        yield { number, int: reader.varint(), bytes: NO_BYTES };
        break;
      case BYTES:
        yield { number, int: 0n, bytes: reader.take(Number(reader.varint())) };
        break;
      case FIXED64:
        reader.take(8);
        break;
      case FIXED32:
        reader.take(4);
        break;
      default:
        throw new RangeError("not a protocol buffer message: unknown wire type");
    }
  }
}

export function int64(field: Field): bigint {
  return BigInt.asIntN(64, field.int);
}

export function text(field: Field): string {
  return decoder.decode(field.bytes);
}

class Reader {
  #at = 0;
  readonly #message: Uint8Array;

  constructor(message: Uint8Array) {
    this.#message = message;
  }

  get done(): boolean {
    return this.#at >= this.#message.length;
  }

  varint(): bigint {
    // The first four bytes fit a small number; bigint only for what is longer.
    let small = 0;
    for (let i = 0; i < 4; i++) {
      const byte = this.#byte();
      small += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) return BigInt(small);
    }
    let value = BigInt(small);
    for (let i = 4; i < 10; i++) {
      const byte = this.#byte();
      value |= BigInt(byte & 0x7f) << BigInt(7 * i);
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    throw new RangeError("not a protocol buffer message: varint too long");
  }

  take(length: number): Uint8Array {
    const end = this.#at + length;
    if (end > this.#message.length)
      throw new RangeError("not a protocol buffer message: it ends inside a field");
    const bytes = this.#message.subarray(this.#at, end);
    this.#at = end;
    return bytes;
  }

  #byte(): number {
    const byte = this.#message[this.#at++];
    if (byte === undefined) throw new RangeError("not a protocol buffer message: it ends inside a number");
    return byte;
  }
}
