/** gRPC's framing: one byte "compressed", four bytes length, the message. */

/** Far above anything etcd sends to us; below it, a broken peer cannot fill the memory. */
const LARGEST_MESSAGE = 64 * 1024 * 1024;
const HEAD = 5;

export function frame(message: Uint8Array): Buffer {
  const out = Buffer.allocUnsafe(HEAD + message.length);
  out[0] = 0;
  out.writeUInt32BE(message.length, 1);
  out.set(message, HEAD);
  return out;
}

/** Puts messages together again, however the bytes were cut. */
export class Unframer {
  #chunks: Buffer[] = [];
  #size = 0;
  /** Before this many bytes are here there is nothing to be had: a long message is not copied for each of its pieces. */
  #needed = HEAD;

  push(chunk: Buffer): Buffer[] {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size < this.#needed) return [];
    let data = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    const messages: Buffer[] = [];
    this.#needed = HEAD;
    while (data.length >= HEAD) {
      if (data[0] !== 0) throw new RangeError("compressed gRPC message, though none was asked for");
      const length = data.readUInt32BE(1);
      if (length > LARGEST_MESSAGE) throw new RangeError(`gRPC message of ${length} bytes`);
      if (data.length < HEAD + length) {
        this.#needed = HEAD + length;
        break;
      }
      messages.push(data.subarray(HEAD, HEAD + length));
      data = data.subarray(HEAD + length);
    }
    this.#chunks = data.length === 0 ? [] : [data];
    this.#size = data.length;
    return messages;
  }
}
