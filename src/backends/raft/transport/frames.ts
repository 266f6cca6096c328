/** Frames on a stream: `u32 length | u8 version | u8 type | u64 counter | body | 32 bytes MAC`. */
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";

/** Longest frame. Whoever announces a longer one is cut off before a byte of it is kept. */
export const LONGEST_FRAME = 64 * 1024;
const VERSION = 1;
const HEAD = 10;
const MAC = 32;

export const FRAME = { hello: 1, auth: 2, request: 3, answer: 4, ping: 5, pong: 6 } as const;

/** What is wrong with the bytes of a peer. */
export class FrameError extends Error {}

/** Cuts a stream into frames. Keeps at most one frame that is not whole. */
export class FrameReader {
  #bytes: Buffer = Buffer.alloc(0);

  *push(bytes: Buffer): Generator<Buffer> {
    this.#bytes = this.#bytes.length === 0 ? bytes : Buffer.concat([this.#bytes, bytes]);
    while (this.#bytes.length >= 4) {
      const length = this.#bytes.readUInt32BE(0);
      if (length < HEAD || length > LONGEST_FRAME) throw new FrameError(`a frame of ${length} bytes`);
      if (this.#bytes.length < 4 + length) break;
      const frame = this.#bytes.subarray(4, 4 + length);
      this.#bytes = this.#bytes.subarray(4 + length);
      yield frame;
    }
    // What is left must not keep a large chunk alive.
    if (this.#bytes.length > 0) this.#bytes = Buffer.from(this.#bytes);
  }
}

/** One direction of one connection: a key and a counter of its own, so that nothing can be replayed or reflected. */
export class Seal {
  readonly #key: Buffer;
  #counter = 0n;

  constructor(key: Buffer) {
    this.#key = key;
  }

  close(type: number, body: Buffer): Buffer {
    const frame = headed(type, this.#counter++, body, MAC);
    this.#mac(frame.subarray(4, frame.length - MAC)).copy(frame, frame.length - MAC);
    return frame;
  }

  /** Throws for what was not sealed with this key, and for anything but the next frame. */
  open(frame: Buffer): { readonly type: number; readonly body: Buffer } {
    if (frame.length < HEAD + MAC) throw new FrameError("a frame that is too short");
    const signed = frame.subarray(0, frame.length - MAC);
    if (!timingSafeEqual(this.#mac(signed), frame.subarray(frame.length - MAC)))
      throw new FrameError("a frame that was not sealed with the key of this connection");
    if (frame[0] !== VERSION || frame.readBigUInt64BE(2) !== this.#counter++)
      throw new FrameError("a frame out of its order");
    return { type: frame[1]!, body: signed.subarray(HEAD) };
  }

  #mac(bytes: Buffer): Buffer {
    return createHmac("sha256", this.#key).update(bytes).digest();
  }
}

/** A frame before there are keys. */
export function plain(type: number, body: Buffer): Buffer {
  return headed(type, 0n, body, 0);
}

export function openPlain(frame: Buffer, type: number): Buffer {
  if (frame[0] !== VERSION || frame[1] !== type)
    throw new FrameError("a frame of another kind than expected");
  return frame.subarray(HEAD);
}

export interface KeyParts {
  readonly secret: Buffer;
  readonly nonces: readonly [caller: string, callee: string];
  readonly names: readonly [caller: string, callee: string];
}

/** The two seals of a connection: of what the caller sends, and of what the callee sends. */
export function sealsOf({ secret, nonces, names }: KeyParts): { caller: Seal; callee: Seal } {
  const seal = (direction: string): Seal => {
    const info = Buffer.from(JSON.stringify(["conclave raft 1", ...names, direction]));
    return new Seal(Buffer.from(hkdfSync("sha256", secret, Buffer.from(nonces.join("")), info, 32)));
  };
  return { caller: seal("caller"), callee: seal("callee") };
}

function headed(type: number, counter: bigint, body: Buffer, room: number): Buffer {
  const length = HEAD + body.length + room;
  if (length > LONGEST_FRAME)
    throw new FrameError(`a message of ${body.length} bytes is too long to be sent`);
  const frame = Buffer.alloc(4 + length);
  frame.writeUInt32BE(length, 0);
  frame[4] = VERSION;
  frame[5] = type;
  frame.writeBigUInt64BE(counter, 6);
  body.copy(frame, 4 + HEAD);
  return frame;
}
