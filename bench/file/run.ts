/**
 * Files, with real processes: how fast the leader changes hands, and what it costs
 * to wait for it. Beside it proper-lockfile, where it can do the same. BENCH_PART
 * lists the parts to run.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import lockfile from "proper-lockfile";
import { fileBackend } from "../../src/backends/file/index.js";
import { Election } from "../../src/election/election.js";
import { chosen, show, summarize } from "../measure.js";
import type { Row } from "../measure.js";
import { Contestant } from "./contestant.js";
import { machineMs } from "./protocol.js";
import type { Setup, Speed, Throughput } from "./protocol.js";

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

/** Every lock has been through its first records, which cost more, after this. */
const LAST_MS = 8_000;

function speedOf(what: Omit<Throughput, "directory" | "lastMs">): Promise<Speed> {
  return inDirectory(async (directory) => {
    const order: Throughput = { ...what, directory, lastMs: LAST_MS };
    const program = fileURLToPath(new URL("throughput.js", import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [program, JSON.stringify(order)]);
    return JSON.parse(stdout) as Speed;
  });
}

/** Acquired and released, a second: the ratio first, then what it is made of. */
async function* throughput(): AsyncGenerator<Row> {
  for (const atOnce of [1, 100]) {
    const ours = await speedOf({ kind: "conclave", atOnce, fsync: true });
    const unsynced = await speedOf({ kind: "conclave", atOnce, fsync: false });
    const theirs = await speedOf({ kind: "proper-lockfile", atOnce, fsync: false });
    const per = (speed: Speed): string =>
      `${Math.round(speed.perSecond)} a second, ${Math.round(speed.cpuUs)} µs of CPU each`;
    const ratio = (speed: Speed): string => (speed.perSecond / theirs.perSecond).toFixed(2);
    yield {
      what: `acquire and release, ${atOnce === 1 ? "one after the other" : `${atOnce} locks at once`}`,
      result: `${ratio(ours)} x (without fsync ${ratio(unsynced)} x): ${per(ours)}; without fsync ${per(unsynced)}`,
      beside: `proper-lockfile (no fence, no fsync): ${per(theirs)}`,
    };
  }
}

const THEIRS = (retryMs: number): Kind => ({ kind: "proper-lockfile", retryMs });

async function* handover(): AsyncGenerator<Row> {
  yield {
    what: "graceful handover",
    result: await handovers(OURS, 100),
    beside: `proper-lockfile, 100 ms retries: ${await handovers(THEIRS(100), 50)}`,
  };
  yield {
    what: "graceful handover (same)",
    result: "",
    beside: `proper-lockfile, 1 s retries: ${await handovers(THEIRS(1000), 20)}`,
  };
}

async function* crash(): AsyncGenerator<Row> {
  yield {
    what: "crash failover, dead-process rule, ttl 10 s",
    result: await failovers({ ...OURS, ttlMs: 10_000 }, 20),
  };
  yield {
    what: "crash failover, without the rule, ttl 2 s",
    result: await failovers({ ...OURS, ttlMs: 2000, deadProcessRule: false }, 8),
    beside: `proper-lockfile, stale 2 s, 100 ms retries: ${await failovers({ ...THEIRS(100), ttlMs: 2000 }, 8)}`,
  };
}

async function* held(): AsyncGenerator<Row> {
  yield {
    what: "may I act? (term.held)",
    result: await costOfHeld(),
    beside: `proper-lockfile, ${await costOfCheck()}`,
  };
}

async function* waiting(): AsyncGenerator<Row> {
  yield {
    what: "idle follower",
    result: await idle(OURS, 20),
    beside: `proper-lockfile, 1 s retries: ${await idle(THEIRS(1000), 20)}`,
  };
}

/** With all parts; BENCH_PART lists some. */
export const minutes = 6;

export default async function* bench(): AsyncGenerator<Row> {
  for (const part of chosen([throughput, handover, crash, held, waiting])) yield* part();
}
