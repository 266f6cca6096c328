/**
 * Voters as processes of their own, and strangers who flood them: a thousand
 * connections at a time, frames of 100 MB, bytes that drip. The leader stays,
 * its term as well, and memory grows neither in a flood nor from one to the next.
 */
import type { ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eachLine } from "../../src/testing/race/lines.js";
import { startCandidate } from "../support/children.js";
import { freePorts } from "../support/free-ports.js";
import { until } from "../support/until.js";

/** So long that a machine with too much to do does not end the term. */
const TTL_MS = 20_000;
const FLOODS = 3;
const CONNECTIONS = 1_000;
const ANNOUNCED = 100 * 1024 * 1024;
/** What handling a flood may take: 64 connections of 64 KiB at a time, buffers of the system, code that is compiled. */
const FLOOD_BYTES = 100 * 1024 * 1024;
/** What a garbage collector may leave lying about. */
const SLACK_BYTES = 40 * 1024 * 1024;

const directory = mkdtempSync(join(tmpdir(), "conclave-raft-flood-"));
const said: { ev: string; token?: string; by: number }[] = [];
let children: ChildProcess[] = [];
let ports: number[] = [];

beforeAll(async () => {
  ports = await freePorts(3);
  const list = ports.map((port, index) => `n${index + 1}@127.0.0.1:${port}`).join(",");
  children = ports.map((_, by) => {
    const url = `raft://${list}?self=n${by + 1}&dir=${join(directory, `n${by + 1}`)}&insecure=true`;
    const child = startCandidate({ url, election: "flood", ttlMs: TTL_MS });
    eachLine(child.stdout!, (line) => {
      const { ev, token } = JSON.parse(line) as { ev: string; token?: string };
      if (ev === "leading" || ev === "stopped") said.push({ ev, by, ...(token && { token }) });
    });
    return child;
  });
  await until(() => said.length > 0, 60_000);
}, 90_000);

afterAll(async () => {
  await Promise.all(
    children.map((child) => {
      const gone = new Promise((resolve) => child.once("close", resolve));
      child.kill("SIGKILL");
      return gone;
    }),
  );
  rmSync(directory, { recursive: true, force: true });
});

const residentBytes = (pid: number): number =>
  1024 * Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);

/** Sends as much of a frame of 100 MB as is taken from it. */
function pour(socket: Socket): void {
  const chunk = Buffer.alloc(64 * 1024, 7);
  const more = (): void => {
    while (!socket.destroyed && socket.bytesWritten < ANNOUNCED && socket.write(chunk));
  };
  socket.on("drain", more);
  more();
}

/** So many connections at once; each does one of three things, and all of them end. */
async function flood(port: number): Promise<void> {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(ANNOUNCED);
  const chunk = Buffer.alloc(64 * 1024, 7);
  const sockets: Socket[] = [];
  await Promise.all(
    Array.from({ length: CONNECTIONS }, (_, index) => {
      const socket = connect(port, "127.0.0.1");
      sockets.push(socket);
      socket.resume();
      socket.once("connect", () => {
        if (index % 3 === 0) socket.write(head);
        if (index % 3 === 1) socket.write(chunk);
        if (index % 3 === 2) socket.write(Buffer.from([0]));
        if (index % 3 === 0) pour(socket);
      });
      socket.on("error", () => {});
      // Those that drip are sent away when they have had their time; the others at once.
      return new Promise<void>((resolve) => socket.once("close", () => resolve()));
    }),
  );
  for (const socket of sockets) socket.destroy();
}

describe.skipIf(process.platform !== "linux")("a flood of strangers", () => {
  it("moves no leader and no term, and memory stays as it was", async () => {
    const [leading] = said;
    const resting = children.map(({ pid }) => residentBytes(pid!));
    const sizes = [resting];
    for (let nth = 0; nth < FLOODS; nth++) {
      const most = [...resting];
      const sampler = setInterval(() => {
        children.forEach(({ pid }, by) => (most[by] = Math.max(most[by]!, residentBytes(pid!))));
      }, 50);
      await Promise.all(ports.map((port) => flood(port))).finally(() => clearInterval(sampler));
      sizes.push(most);
    }
    const text = sizes.map((of) => of.map((bytes) => Math.round(bytes / 1024 / 1024)).join(" ")).join(", ");
    console.log(
      `${FLOODS * CONNECTIONS} connections to each voter; resident MB at rest and at most in each flood: ${text}`,
    );
    for (const [by, first] of sizes[1]!.entries()) {
      expect(first - resting[by]!, text).toBeLessThan(FLOOD_BYTES);
      expect(sizes.at(-1)![by]! - first, text).toBeLessThan(SLACK_BYTES);
    }
    expect(said).toEqual([leading]);
  }, 180_000);
});
