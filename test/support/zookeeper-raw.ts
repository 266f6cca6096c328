/** A connection of our own, for looking at the store behind the back of what is tested. */
import type { ZooKeeperConnection } from "../../src/backends/zookeeper/client.js";
import { parseEndpoint } from "../../src/backends/zookeeper/client/endpoint.js";
import { WireZooKeeperClient } from "../../src/backends/zookeeper/client/wire-client.js";
import { connect } from "node:net";
import { FrameReader } from "../../src/backends/zookeeper/client/framing.js";
import { JuteReader, JuteWriter } from "../../src/backends/zookeeper/client/jute.js";
import { connectRequest } from "../../src/backends/zookeeper/client/messages.js";

const limits = { signal: new AbortController().signal, limitMs: 10_000 };

export interface RawClient {
  readonly connection: ZooKeeperConnection;
  /** Creates a node on which everybody has only these permissions (1 read, 2 write, 4 create, 8 delete, 16 admin). */
  restricted(path: string, permissions: number): Promise<void>;
  close(): Promise<void>;
}

export async function rawClient(host: string): Promise<RawClient> {
  const client = new WireZooKeeperClient({ endpoints: [parseEndpoint(host)] });
  const session = await client.openSession(10_000, limits);
  return {
    connection: await session.connected(limits),
    restricted: (path, permissions) => createRestricted(host, path, permissions),
    close: async () => {
      await session.close(limits).catch(() => {});
      await client[Symbol.asyncDispose]();
    },
  };
}

function createRestricted(host: string, path: string, permissions: number): Promise<void> {
  const { host: name, port } = parseEndpoint(host);
  return new Promise((resolve, reject) => {
    const socket = connect(port, name);
    const frames = new FrameReader();
    let greeted = false;
    const handshake = { lastZxid: 0n, timeoutMs: 5_000, sessionId: 0n, password: Buffer.alloc(16) };
    socket.on("connect", () => socket.write(connectRequest(handshake)));
    socket.on("error", reject);
    socket.on("data", (chunk) => {
      for (const frame of frames.push(chunk)) {
        if (greeted) {
          const reader = new JuteReader(frame);
          reader.int();
          reader.long();
          const errno = reader.int();
          socket.destroy();
          if (errno === 0) resolve();
          else reject(new Error(`create: ${errno}`));
          return;
        }
        greeted = true;
        const create = new JuteWriter().int(1).int(1).text(path).text("").int(1);
        socket.write(create.int(permissions).text("world").text("anyone").int(0).frame());
      }
    });
  });
}
