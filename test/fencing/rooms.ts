/** Every kind of fenced resource, as a list that leaders add to. */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import {
  FencedFile,
  fenceHandler,
  Gate,
  MemoryFence,
  RecordFence,
  tokenFetch,
} from "../../src/fencing/index.js";
import { fileBackend } from "../../src/backends/file/index.js";
import { memoryBackend } from "../../src/index.js";
import type { RecordStore } from "../../src/index.js";
import type { FencedRoom, Resource } from "./suite.js";

function memoryResource(list: string[] = [], highest: bigint | null = null): Resource {
  const fence = new MemoryFence({ highest });
  return {
    add: async (token, text) => {
      fence.check(token);
      list.push(text);
    },
    list: async () => [...list],
    restarted: async () => memoryResource(list, fence.highest),
  };
}

function gateResource(list: string[] = [], fence = new MemoryFence()): Resource {
  const gate = new Gate({ fence });
  return {
    add: (token, text) =>
      gate.run(token, async () => {
        // An act that takes time: a newer leader has to wait for it.
        await new Promise((resolve) => setImmediate(resolve));
        list.push(text);
      }),
    list: async () => [...list],
    restarted: async () => gateResource(list, new MemoryFence({ highest: fence.highest })),
  };
}

export function recordResource(records: RecordStore, name: string): Resource {
  const fence = new RecordFence({ records, name });
  const parse = (data: string | null): string[] => (data === null ? [] : (JSON.parse(data) as string[]));
  return {
    add: async (token, text) => {
      await fence.write(token, (data) => JSON.stringify([...parse(data), text]));
    },
    list: async () => parse((await fence.read())?.data ?? null),
    restarted: async () => recordResource(records, name),
  };
}

export function fileResource(path: string): Resource {
  const file = new FencedFile({ path });
  return {
    add: (token, text) => file.append(token, `${text}\n`),
    list: async () => (await file.read())?.data.toString().split("\n").slice(0, -1) ?? [],
    restarted: async () => fileResource(path),
  };
}

async function httpResource(list: string[], fence: MemoryFence): Promise<Resource> {
  const gate = new Gate({ fence });
  const server: Server = createServer(
    fenceHandler(gate, (request, response) => {
      request.setEncoding("utf8");
      let body = "";
      request.on("data", (chunk: string) => (body += chunk));
      request.on("end", () => {
        list.push(body);
        response.end("ok");
      });
    }),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(server);
  const { port } = server.address() as AddressInfo;
  return {
    add: async (token, text) => {
      const response = await tokenFetch(token)(`http://127.0.0.1:${port}/`, { method: "POST", body: text });
      if (!response.ok) throw new Error(`status ${response.status}`);
    },
    list: async () => [...list],
    restarted: async () => httpResource(list, new MemoryFence({ highest: fence.highest })),
  };
}

const open: Server[] = [];
const directories: string[] = [];

afterAll(async () => {
  for (const server of open.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true, force: true });
});

export async function temporary(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "conclave-fencing-"));
  directories.push(directory);
  return directory;
}

let resources = 0;

export const fencedRooms: readonly FencedRoom[] = [
  { name: "memory", open: async () => memoryResource() },
  { name: "gate", open: async () => gateResource() },
  {
    name: "records of the memory backend",
    open: async () => recordResource(memoryBackend().records, "list"),
  },
  {
    name: "records of the file backend",
    open: async () => recordResource(fileBackend({ directory: await temporary() }).records, "list"),
  },
  { name: "file, append", open: async () => fileResource(join(await temporary(), `list-${++resources}`)) },
  { name: "HTTP", open: async () => httpResource([], new MemoryFence()) },
];
