/** `conclave serve` with few file descriptors and many clients that never ask. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { afterEach, expect, it } from "vitest";
import type { WireElection } from "../../src/sidecar/index.js";
import { ask, until } from "./http.js";
import { Cli, scratch } from "./process.js";

const DESCRIPTORS = 256;
/** In several processes: each has a file limit of its own. */
const CROWDS = 8;
const SOCKETS_EACH = 512;
const TTL_MS = 6_000;

/** Opens connections that never send anything and never close their own side. Prints a line when all were tried. */
const CROWD = `
const { connect } = require("node:net");
const [port, count] = process.argv.slice(1).map(Number);
let settled = 0;
for (let i = 0; i < count; i++) {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  let open = true;
  const tried = () => { if (open && ++settled === count) console.log("all"); open = false; };
  socket.once("connect", tried);
  socket.on("error", tried);
}
setInterval(() => {}, 1000);
`;

const crowds = new Set<ChildProcess>();
afterEach(() => {
  for (const child of crowds) child.kill("SIGKILL");
  crowds.clear();
});

async function crowd(port: string): Promise<void> {
  const child = spawn(process.execPath, ["-e", CROWD, port, String(SOCKETS_EACH)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  crowds.add(child);
  await once(createInterface({ input: child.stdout }), "line");
}

/** Connections of a listening port in FIN-WAIT-2, as the kernel lists them. */
function halfClosed(port: string): number {
  const local = `:${Number(port).toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = readFileSync("/proc/net/tcp", "utf8").trim().split("\n").slice(1);
  return rows.filter((row) => {
    const [, address, , state] = row.trim().split(/\s+/);
    return address!.endsWith(local) && state === "05";
  }).length;
}

async function state(at: string): Promise<WireElection> {
  const { status, body } = await ask(at, { timeout: 10_000 });
  expect(status).toBe(200);
  return JSON.parse(body) as WireElection;
}

it("4,096 silent sockets and 256 descriptors: it answers, and its term goes on", async () => {
  const flags = ["--lock-dir", scratch(), "--listen", "127.0.0.1:0", "--ttl", `${TTL_MS}ms`];
  const limited = ["sh", "-c", `ulimit -n ${DESCRIPTORS}; exec "$@"`, "sh"];
  const cli = new Cli(["serve", "jobs", ...flags], {}, undefined, limited);
  await cli.line(/ELECTED/);
  const handles = (): number => readdirSync(`/proc/${cli.child.pid}/fd`).length;
  const { port } = new URL(/(http:\S+)/.exec(await cli.line(/^listening on/))![1]!);
  const at = `http://127.0.0.1:${port}/elections/jobs`;
  const before = await state(at);
  expect(before.leading).toBe(true);
  await Promise.all(Array.from({ length: CROWDS }, () => crowd(port)));
  expect(handles()).toBeLessThan(DESCRIPTORS);
  const end = performance.now() + 1.5 * TTL_MS;
  while (performance.now() < end) {
    const { leading, leader } = await state(at);
    expect({ leading, token: leader?.token }).toEqual({ leading: true, token: before.leader!.token });
    expect(handles()).toBeLessThan(DESCRIPTORS);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  // None of them has closed its side: the server closes them alone, and keeps nothing.
  await until("the silent ones are gone", () => handles() < 64);
  expect(halfClosed(port)).toBe(0);
  expect(cli.out.join("\n")).not.toContain("EMFILE");
  cli.kill("SIGTERM");
  expect(await cli.exit).toEqual({ code: 0, signal: null });
}, 90_000);
