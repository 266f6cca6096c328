/**
 * Files, with real processes: how fast the leader changes hands, and what it costs
 * to wait for it. Beside it proper-lockfile, where it can do the same.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import lockfile from "proper-lockfile";
import { fileBackend } from "../../src/backends/file/index.js";
import { Election } from "../../src/election/election.js";
import { show, summarize } from "../measure.js";
import type { Row } from "../measure.js";
import { Contestant } from "./contestant.js";
import { machineMs } from "./protocol.js";
import type { Setup } from "./protocol.js";

type Kind = Omit<Setup, "directory">;

const OURS: Kind = { kind: "conclave" };
const SETTLE_MS = 150;

async function inDirectory<T>(use: (directory: string) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), "conclave-bench-"));
  try {
    return await use(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Resign to elected, back and forth between two processes. */
function handovers(kind: Kind, rounds: number): Promise<string> {
  return inDirectory(async (directory) => {
    let leader = new Contestant({ ...kind, directory });
    let follower = new Contestant({ ...kind, directory });
    await leader.stand();
    const samples: number[] = [];
    for (let round = 0; round < rounds; round++) {
      await follower.wait();
      // Any phase of the follower's retries, so that none is favoured.
      await sleep(SETTLE_MS + Math.random() * (kind.retryMs ?? SETTLE_MS));
      const [resigning, elected] = [leader.next("resigning"), follower.next("elected")];
      leader.tell("resign");
      samples.push((await elected).atMs - (await resigning).atMs);
      [leader, follower] = [follower, leader];
    }
    await Promise.all([leader.kill(), follower.kill()]);
    return show(summarize(samples));
  });
}

/** SIGKILL to elected. */
async function failovers(kind: Kind, rounds: number): Promise<string> {
  const samples: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await inDirectory(async (directory) => {
      const leader = new Contestant({ ...kind, directory });
      await leader.stand();
      const follower = new Contestant({ ...kind, directory });
      const elected = follower.next("elected");
      await follower.wait();
      await sleep(SETTLE_MS + Math.random() * 700);
      const killed = await leader.kill();
      samples.push((await elected).atMs - killed);
      await follower.kill();
    });
  }
  return show(summarize(samples));
}

/** Processor time and memory of a process that waits to be elected. */
function idle(kind: Kind, seconds: number): Promise<string> {
  return inDirectory(async (directory) => {
    const leader = new Contestant({ ...kind, directory });
    await leader.stand();
    const follower = new Contestant({ ...kind, directory });
    await follower.wait();
    await sleep(2000); // past its start
    const before = await follower.usage();
    await sleep(seconds * 1000);
    const after = await follower.usage();
    await Promise.all([leader.kill(), follower.kill()]);
    const percent = (after.cpuMs - before.cpuMs) / (seconds * 10);
    return `${percent.toFixed(2)} % of a core, ${Math.round(after.rssMiB)} MiB resident (n = 1, ${seconds} s)`;
  });
}

function costOfHeld(): Promise<string> {
  return inDirectory(async (directory) => {
    await using election = new Election({ name: "bench", backend: fileBackend({ directory }) });
    const term = await election.campaign();
    const calls = 2_000_000;
    let held = 0;
    const measure = (): number => {
      const start = machineMs();
      for (let call = 0; call < calls; call++) held += term.held ? 1 : 0;
      return ((machineMs() - start) * 1e6) / calls;
    };
    measure(); // warm
    const ns = Math.min(measure(), measure(), measure());
    await term.resign();
    return held > 0 ? `${Math.round(ns)} ns a call` : "was not held";
  });
}

function costOfCheck(): Promise<string> {
  return inDirectory(async (directory) => {
    const file = join(directory, "bench");
    writeFileSync(file, "");
    const release = await lockfile.lock(file);
    const calls = 5000;
    const start = machineMs();
    for (let call = 0; call < calls; call++) await lockfile.check(file);
    const us = ((machineMs() - start) * 1e3) / calls;
    await release();
    return `check(): ${Math.round(us)} µs a call`;
  });
}

export default async function* bench(): AsyncGenerator<Row> {
  const theirs = (retryMs: number): Kind => ({ kind: "proper-lockfile", retryMs });
  yield {
    what: "graceful handover",
    result: await handovers(OURS, 100),
    beside: `proper-lockfile, 100 ms retries: ${await handovers(theirs(100), 50)}`,
  };
  yield {
    what: "graceful handover (same)",
    result: "",
    beside: `proper-lockfile, 1 s retries: ${await handovers(theirs(1000), 20)}`,
  };
  yield {
    what: "crash failover, dead-process rule, ttl 10 s",
    result: await failovers({ ...OURS, ttlMs: 10_000 }, 20),
  };
  yield {
    what: "crash failover, without the rule, ttl 2 s",
    result: await failovers({ ...OURS, ttlMs: 2000, deadProcessRule: false }, 8),
    beside: `proper-lockfile, stale 2 s, 100 ms retries: ${await failovers({ ...theirs(100), ttlMs: 2000 }, 8)}`,
  };
  yield {
    what: "may I act? (term.held)",
    result: await costOfHeld(),
    beside: `proper-lockfile, ${await costOfCheck()}`,
  };
  yield {
    what: "idle follower",
    result: await idle(OURS, 20),
    beside: `proper-lockfile, 1 s retries: ${await idle(theirs(1000), 20)}`,
  };
}
