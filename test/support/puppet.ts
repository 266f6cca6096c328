/** An HTTP/2 server in front of a real etcd: passes everything on, except what a test answers in its place. */
import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect,
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { frame } from "../../src/backends/etcd/client/framing.js";

const GRPC = { ":status": 200, "content-type": "application/grpc" };

export class Puppet {
  /** `true`: answered here. */
  take: (stream: ServerHttp2Stream, path: string) => boolean = () => false;
  /** Requests for each path. */
  readonly counts = new Map<string, number>();
  readonly #server: Http2Server = createServer();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #etcd: ClientHttp2Session;

  private constructor(etcd: string) {
    this.#etcd = connect(`http://${etcd}`);
    this.#etcd.on("error", () => {});
    this.#server.on("session", (session) => this.#sessions.add(session.on("error", () => {})));
    this.#server.on("stream", (stream, headers) => this.#serve(stream, headers));
  }

  static async start(etcd: string): Promise<Puppet> {
    const puppet = new Puppet(etcd);
    puppet.#server.listen(0, "127.0.0.1");
    await once(puppet.#server, "listening");
    return puppet;
  }

  get endpoint(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#etcd.destroy();
    for (const session of this.#sessions) session.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const path = String(headers[":path"]);
    this.counts.set(path, (this.counts.get(path) ?? 0) + 1);
    stream.on("error", () => {});
    if (this.take(stream, path)) return;
    const up = this.#etcd.request({ ":method": "POST", ":path": path, ...GRPC_REQUEST });
    up.on("error", () => {});
    stream.on("data", (chunk: Buffer) => up.write(chunk));
    stream.on("end", () => up.end());
    stream.on("close", () => up.close(constants.NGHTTP2_CANCEL));
    let trailers: IncomingHttpHeaders = {};
    up.on("response", (answer) => {
      if (stream.destroyed) return;
      const status = answer["grpc-status"];
      if (status !== undefined)
        return stream.respond({ ...GRPC, "grpc-status": status }, { endStream: true });
      stream.respond(GRPC, { waitForTrailers: true });
      stream.on("wantTrailers", () =>
        stream.sendTrailers({ "grpc-status": trailers["grpc-status"] ?? "14" }),
      );
    });
    up.on("trailers", (last) => {
      trailers = last;
    });
    const open = (): boolean => !stream.destroyed && stream.headersSent && !stream.writableEnded;
    up.on("data", (chunk: Buffer) => void (open() && stream.write(chunk)));
    up.on("end", () => void (open() && stream.end()));
  }
}

const GRPC_REQUEST = { "content-type": "application/grpc", te: "trailers" };

/** Answers one request, in peace, with this message. */
export function say(stream: ServerHttp2Stream, message: Uint8Array): void {
  stream.respond(GRPC, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.resume();
  stream.on("end", () => stream.end(frame(message)));
}
