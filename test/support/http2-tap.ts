/**
 * A proxy that reads HTTP/2 frames as they pass, so that a test sees which
 * streams are open and what was sent on them, and that can put in frames of its
 * own, as a proxy with opinions about idle streams does.
 */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

export const DATA = 0;
export const HEADERS = 1;
export const RST_STREAM = 3;
const END_STREAM = 1;
const END_HEADERS = 4;
const HEAD = 9;
const PREFACE = 24;

export interface Frame {
  readonly from: "client" | "server";
  /** Which connection, counted from 0. */
  readonly connection: number;
  readonly stream: number;
  readonly type: number;
  readonly length: number;
  readonly last: boolean;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  readonly index: number;
}

export class Http2Tap {
  readonly frames: Frame[] = [];
  /** Frames from the client for which this is true do not reach the server. */
  swallow: (frame: Frame) => boolean = () => false;
  readonly #server: Server;
  readonly #pairs: Pair[] = [];

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(port: number): Promise<Http2Tap> {
    const server = createServer();
    const tap = new Http2Tap(server);
    server.on("connection", (client) => tap.#join(client, port));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return tap;
  }

  get endpoint(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Streams of the newest connection that neither side has reset nor both have ended. */
  get open(): number[] {
    const pair = this.#pairs.at(-1);
    if (pair === undefined || pair.client.destroyed) return [];
    const frames = this.frames.filter((frame) => frame.connection === pair.index);
    const began = frames.filter((frame) => frame.from === "client" && frame.type === HEADERS);
    return began
      .map((frame) => frame.stream)
      .filter((stream) => {
        const its = frames.filter((frame) => frame.stream === stream);
        const ended = (from: Frame["from"]): boolean =>
          its.some((frame) => frame.from === from && frame.last);
        return !its.some((frame) => frame.type === RST_STREAM) && !(ended("client") && ended("server"));
      });
  }

  /** Of those, the ones that no request was sent on. */
  get idle(): number[] {
    return this.open.filter((stream) => this.sent(stream) === 0);
  }

  /** Messages the client sent on a stream of the newest connection. */
  sent(stream: number): number {
    return this.#of(stream).filter(
      (frame) => frame.from === "client" && frame.type === DATA && frame.length > 0,
    ).length;
  }

  resetByClient(stream: number): boolean {
    return this.#of(stream).some((frame) => frame.from === "client" && frame.type === RST_STREAM);
  }

  /** Tells both sides that the other one gave the stream up. */
  reset(stream: number, code: number): void {
    const payload = Buffer.alloc(4);
    payload.writeUInt32BE(code);
    this.#put("client", stream, RST_STREAM, 0, payload);
    this.#put("server", stream, RST_STREAM, 0, payload);
  }

  /** Answers in the server's place; nothing is said to the server. Without `last` the answer has only begun. */
  answer(
    stream: number,
    headers: Record<string, string>,
    { last = true, data = Buffer.alloc(0) } = {},
  ): void {
    this.#put("client", stream, HEADERS, END_HEADERS | (last ? END_STREAM : 0), literals(headers));
    if (data.length > 0) this.#put("client", stream, DATA, 0, data);
  }

  /** Resets every connection, as TCP does. */
  cut(): void {
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
  }

  async close(): Promise<void> {
    for (const { client, server } of this.#pairs) {
      client.destroy();
      server.destroy();
    }
    this.#server.close();
    await once(this.#server, "close");
  }

  #of(stream: number): Frame[] {
    const connection = this.#pairs.length - 1;
    return this.frames.filter((frame) => frame.connection === connection && frame.stream === stream);
  }

  #put(to: "client" | "server", stream: number, type: number, flags: number, payload: Buffer): void {
    const pair = this.#pairs.at(-1);
    const head = Buffer.alloc(HEAD);
    head.writeUIntBE(payload.length, 0, 3);
    head[3] = type;
    head[4] = flags;
    head.writeUInt32BE(stream, 5);
    pair?.[to].write(Buffer.concat([head, payload]));
    if (pair === undefined) return;
    const last = type !== RST_STREAM && (flags & END_STREAM) !== 0;
    const from = to === "client" ? "server" : "client";
    // What the client did itself is what tests ask about: our own resets are noted as the server's.
    if (from === "server")
      this.frames.push({ from, connection: pair.index, stream, type, length: payload.length, last });
  }

  #join(client: Socket, port: number): void {
    const server = connect(port, "127.0.0.1");
    const pair: Pair = { client, server, index: this.#pairs.length };
    this.#pairs.push(pair);
    this.#pipe(pair, "client", client, server);
    this.#pipe(pair, "server", server, client);
  }

  #pipe({ index }: Pair, from: Frame["from"], source: Socket, target: Socket): void {
    let rest: Buffer = Buffer.alloc(0);
    let preface = from === "client" ? PREFACE : 0;
    source.setNoDelay(true);
    source.on("error", () => {});
    source.on("close", () => target.destroy());
    source.on("data", (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      if (preface > 0) {
        if (rest.length < preface) return;
        target.write(rest.subarray(0, preface));
        rest = rest.subarray(preface);
        preface = 0;
      }
      while (rest.length >= HEAD && rest.length >= HEAD + rest.readUIntBE(0, 3)) {
        const bytes = rest.subarray(0, HEAD + rest.readUIntBE(0, 3));
        rest = rest.subarray(bytes.length);
        const frame = read(bytes, from, index);
        this.frames.push(frame);
        if (from === "server" || !this.swallow(frame)) target.write(bytes);
      }
    });
  }
}

function read(bytes: Buffer, from: Frame["from"], connection: number): Frame {
  const type = bytes[3]!;
  const last = (type === DATA || type === HEADERS) && (bytes[4]! & END_STREAM) !== 0;
  return { from, connection, type, last, length: bytes.length - HEAD, stream: bytes.readUInt32BE(5) };
}

/** HPACK without its tables: every name and value in full. Short ones only. */
function literals(headers: Record<string, string>): Buffer {
  const text = (value: string): Buffer => Buffer.from([value.length, ...Buffer.from(value, "latin1")]);
  return Buffer.concat(
    Object.entries(headers).map(([name, value]) =>
      Buffer.concat([Buffer.from([0]), text(name), text(value)]),
    ),
  );
}
