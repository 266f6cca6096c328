/**
 * Three processes elect among themselves, with no server. The leader is killed,
 * loses its disk and comes back. Everything happens on this machine, in a
 * temporary directory, and is gone afterwards. README.md does the same by hand.
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Election } from "conclave";
import { raftBackend } from "conclave/raft";

const TTL_MS = 1_000;
const PROGRAM = fileURLToPath(import.meta.url);

/** A voter that also wants to lead. It ends when its parent does. */
async function voter(self: string, peers: readonly string[], dir: string): Promise<void> {
  const stop = new AbortController();
  process.once("disconnect", () => stop.abort());
  const backend = raftBackend({ peers, self, dir, insecure: true }); // insecure: loopback only
  const election = new Election({
    name: "work",
    id: self,
    value: self,
    backend,
    closeBackend: true,
    ttlMs: TTL_MS,
  });
  // While too few voters are up, every attempt says so here. A service logs it; this example makes it happen.
  election.on("error", () => {});
  await election.run(
    (term) =>
      new Promise<void>((resolve) => {
        process.send?.(String(term.token));
        term.signal.addEventListener("abort", () => resolve());
      }),
    { signal: stop.signal },
  );
  await election.close();
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 4 * TTL_MS));
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => new Promise((resolve) => server.once("listening", resolve))));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

async function main(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "conclave-peers-"));
  const names = ["n1", "n2", "n3"];
  const ports = await freePorts(names.length);
  const peers = names.map((name, index) => `${name}@127.0.0.1:${ports[index]}`);
  const children = new Map<string, ChildProcess>();
  let elected = (_leader: { name: string; token: bigint }): void => {};
  const nextLeader = (): Promise<{ name: string; token: bigint }> =>
    new Promise((resolve) => {
      elected = resolve;
    });
  const start = (name: string): void => {
    const args = [PROGRAM, name, join(directory, name), ...peers];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    child.on("message", (token) => elected({ name, token: BigInt(token as string) }));
    children.set(name, child);
  };
  const end = async (name: string, how: () => void): Promise<void> => {
    const ended = new Promise((resolve) => children.get(name)?.once("close", resolve));
    how();
    await ended;
  };

  try {
    const waiting = nextLeader();
    names.forEach(start);
    const first = await waiting;
    console.log("three processes, no server: one of them leads");

    await pause(); // the third voter may still be at its first start, which needs all three
    const succeeding = nextLeader();
    await end(first.name, () => children.get(first.name)?.kill("SIGKILL"));
    const second = await succeeding;
    console.log(`the leader is killed: ${second.name === first.name ? "nobody" : "another one"} leads`);
    console.log(`the token is ${second.token > first.token ? "higher" : "NOT higher"} than before`);

    await rm(join(directory, first.name), { recursive: true });
    start(first.name);
    console.log("the killed one has lost its disk and comes back: it asks both others before it votes");

    await pause();
  } finally {
    for (const [name, child] of children)
      if (child.exitCode === null && child.signalCode === null) await end(name, () => child.kill("SIGKILL"));
    await rm(directory, { recursive: true, force: true });
  }
  console.log("all processes have ended");
}

const [self, dir, ...peers] = process.argv.slice(2);
if (self === undefined || dir === undefined) await main();
else await voter(self, peers, dir);
