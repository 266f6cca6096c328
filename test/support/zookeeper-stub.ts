/** A server that speaks ZooKeeper's protocol as a test tells it to: for answers that a real one does not give. */
import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { FrameReader } from "../../src/backends/zookeeper/client/framing.js";
import { JuteReader, JuteWriter } from "../../src/backends/zookeeper/client/jute.js";

/** A request as it came: its number, its kind, the rest. */
export interface StubRequest {
  readonly xid: number;
  readonly type: number;
  readonly body: JuteReader;
}

export interface StubAnswers {
  /** Bytes to answer the handshake with; `undefined`: the connection is closed. Default: a session of 4 s. */
  connect?(request: JuteReader): Buffer | undefined;
  /** Bytes to answer a request with; `undefined`: nothing is sent. Default: a header without an error. */
  answer?(request: StubRequest): Buffer | undefined;
}

export function connected(timeoutMs = 4_000, sessionId = 77n, readOnly = false): Buffer {
  return new JuteWriter()
    .int(0)
    .int(timeoutMs)
    .long(sessionId)
    .buffer(Buffer.alloc(16, 1))
    .bool(readOnly)
    .frame();
}

export function header(xid: number, errno = 0, zxid = 100n): JuteWriter {
  return new JuteWriter().int(xid).long(zxid).int(errno);
}

export class ZooKeeperStub {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(answers: StubAnswers): Promise<ZooKeeperStub> {
    const server = createServer();
    const stub = new ZooKeeperStub(server);
    server.on("connection", (socket) => stub.#serve(socket, answers));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return stub;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  #serve(socket: Socket, answers: StubAnswers): void {
    const frames = new FrameReader();
    let greeted = false;
    this.#sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("data", (chunk) => {
      for (const frame of frames.push(chunk)) {
        const body = new JuteReader(frame);
        if (!greeted) {
          greeted = true;
          const bytes = answers.connect === undefined ? connected() : answers.connect(body);
          if (bytes === undefined) socket.destroy();
          else socket.write(bytes);
          continue;
        }
        const request = { xid: body.int(), type: body.int(), body };
        const bytes = answers.answer === undefined ? header(request.xid).frame() : answers.answer(request);
        if (bytes !== undefined) socket.write(bytes);
      }
    });
  }
}
