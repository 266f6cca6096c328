/**
 * PostgreSQL: handover, acquire and release, idle load; beside advisory locks of
 * the same server in the same run. Everything is on this machine.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { postgresBackend } from "../../src/backends/postgres/index.js";
import { Election } from "../../src/election/election.js";
import { hasPostgres, PostgresServer } from "../../test/support/postgres-server.js";
import { type Row, show, summarize } from "../measure.js";
import { floorCycle, floorHandovers, floorTogether, prepareFloor } from "./floor.js";

const HANDOVERS = Number(process.env["BENCH_HANDOVERS"] ?? 300);
const SECONDS = Number(process.env["BENCH_SECONDS"] ?? 5);
const IDLE_SECONDS = Number(process.env["BENCH_IDLE_SECONDS"] ?? 30);
const FOLLOWERS = 20;
const MANY = Number(process.env["BENCH_ELECTIONS"] ?? 1_000);
/** Followers have connected and listen, and what they asked at the beginning is over. */
const SETTLE_MS = 5_000;

export default async function* bench(): AsyncGenerator<Row> {
  if (!hasPostgres()) {
    yield { what: "skipped", result: "PostgreSQL is not installed (make servers)" };
    return;
  }
  // In memory: advisory locks write nothing, so that otherwise the disk would be measured. Each grant and each release is
  // a commit, which on a disk costs its fsync.
  const home = existsSync("/dev/shm") ? "/dev/shm" : undefined;
  const server = await PostgresServer.start({ home, settings: { fsync: "on", full_page_writes: "on" } });
  try {
    yield {
      what: "graceful handover, 1 follower",
      result: show(summarize(await handovers(server))),
      beside: `advisory lock: ${show(summarize(await advisoryHandovers(server)))}; ${await bareHandovers(server)}`,
    };
    for (const lanes of [1, 100]) {
      const ours = await cycles(server, lanes);
      const peer = await advisoryCycles(server, Math.min(lanes, 50));
      yield {
        what: `acquire and release, ${lanes} at once`,
        result: `${ours.toFixed(0)}/s`,
        beside: `advisory locks, ${Math.min(lanes, 50)} at once: ${peer.toFixed(0)}/s; ${await bareCycles(server, lanes)}`,
      };
    }
  } finally {
    await server.stop();
  }
  const logging = await PostgresServer.start({ home, settings: { log_statement: "all" } });
  try {
    yield {
      what: `1 leader and ${FOLLOWERS} followers, ttl 10 s, idle`,
      result: `${(await idle(logging)).toFixed(1)} statements/s`,
    };
    yield { what: `${MANY} elections led by one process, ttl 10 s`, result: await many(logging) };
  } finally {
    await logging.stop();
  }
}

/** From the call of resign to the moment the next one leads. */
async function handovers(server: PostgresServer): Promise<number[]> {
  const elections = [0, 1].map(
    () =>
      new Election({ name: "handover", backend: postgresBackend({ url: server.url() }), closeBackend: true }),
  );
  const samples: number[] = [];
  let term = await elections[0]!.campaign();
  for (let i = 0; i < HANDOVERS; i++) {
    const next = elections[(i + 1) % 2]!.campaign();
    await new Promise((resolve) => setTimeout(resolve, 15));
    const began = performance.now();
    void term.resign();
    term = await next;
    samples.push(performance.now() - began);
  }
  await term.resign();
  await Promise.all(elections.map((election) => election.close()));
  return samples;
}

async function advisoryHandovers(server: PostgresServer): Promise<number[]> {
  const clients = await Promise.all([0, 1].map(() => server.client()));
  const samples: number[] = [];
  await clients[0]!.query("SELECT pg_advisory_lock(1)");
  for (let i = 0; i < HANDOVERS; i++) {
    const next = clients[(i + 1) % 2]!.query("SELECT pg_advisory_lock(1)");
    await new Promise((resolve) => setTimeout(resolve, 15));
    const began = performance.now();
    const unlocked = clients[i % 2]!.query("SELECT pg_advisory_unlock(1)");
    await next;
    samples.push(performance.now() - began);
    // A client that ends with a question under way rejects it.
    await unlocked;
  }
  await Promise.all(clients.map((client) => client.end()));
  return samples;
}

async function perSecond(lanes: number, cycle: (lane: number) => Promise<void>): Promise<number> {
  const end = performance.now() + SECONDS * 1000;
  let done = 0;
  await Promise.all(
    Array.from({ length: lanes }, async (_, lane) => {
      while (performance.now() < end) {
        await cycle(lane);
        done++;
      }
    }),
  );
  return done / SECONDS;
}

async function cycles(server: PostgresServer, lanes: number): Promise<number> {
  const backend = postgresBackend({ url: server.url(), connections: Math.min(lanes, 20) });
  const elections = Array.from(
    { length: lanes },
    (_, i) => new Election({ name: `cycle-${lanes}-${i}`, backend }),
  );
  const rate = await perSecond(lanes, async (lane) => {
    await (await elections[lane]!.campaign()).resign();
  });
  await Promise.all(elections.map((election) => election.close()));
  await backend[Symbol.asyncDispose]();
  return rate;
}

async function advisoryCycles(server: PostgresServer, lanes: number): Promise<number> {
  const pool = new pg.Pool({ connectionString: server.url(), max: lanes });
  const rate = await perSecond(lanes, async (lane) => {
    const client = await pool.connect();
    await client.query("SELECT pg_advisory_lock($1)", [lane]);
    await client.query("SELECT pg_advisory_unlock($1)", [lane]);
    client.release();
  });
  await pool.end();
  return rate;
}

async function bareHandovers(server: PostgresServer): Promise<string> {
  await prepareFloor(server, 1);
  return `bare statements: ${show(summarize(await floorHandovers(server, HANDOVERS)))}`;
}

async function bareCycles(server: PostgresServer, lanes: number): Promise<string> {
  await prepareFloor(server, lanes);
  const pool = new pg.Pool({ connectionString: server.url(), max: Math.min(lanes, 20) });
  const alone = await perSecond(lanes, floorCycle(pool));
  await pool.end();
  if (lanes === 1) return `bare statements: ${alone.toFixed(0)}/s`;
  await prepareFloor(server, lanes);
  const together = (await floorTogether(server, lanes, SECONDS * 1000)) / SECONDS;
  return `bare statements: ${alone.toFixed(0)}/s, all of them in one: ${together.toFixed(0)}/s`;
}

/** Statements by the server's own log: its counter of transactions is brought up to date late. */
async function statementsPerSecond(elections: readonly Election[], server: PostgresServer): Promise<number> {
  const terms = elections.map((election) => election.campaign().catch(() => {}));
  if (terms.length > 0) await Promise.race(terms);
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const count = (): number =>
    readFileSync(join(server.directory, "log"), "utf8").match(/LOG: +(?:execute|statement)/g)?.length ?? 0;
  const before = count();
  await new Promise((resolve) => setTimeout(resolve, IDLE_SECONDS * 1000));
  const rate = (count() - before) / IDLE_SECONDS;
  await Promise.all(elections.map((election) => election.close()));
  return rate;
}

async function idle(server: PostgresServer): Promise<number> {
  const open = (): Election =>
    new Election({ name: "idle", backend: postgresBackend({ url: server.url() }), closeBackend: true });
  return statementsPerSecond(Array.from({ length: 1 + FOLLOWERS }, open), server);
}

/** Elections that one process leads, all on one backend: time to lead all, then statements and CPU of keeping them. */
async function many(server: PostgresServer): Promise<string> {
  const backend = postgresBackend({ url: server.url() });
  const elections = Array.from({ length: MANY }, (_, i) => new Election({ name: `many-${i}`, backend }));
  const began = performance.now();
  await Promise.all(elections.map((election) => election.campaign()));
  const took = performance.now() - began;
  const cpu = process.cpuUsage();
  const kept = performance.now();
  const rate = await statementsPerSecond([], server);
  const { user, system } = process.cpuUsage(cpu);
  const share = (user + system) / 10 / (performance.now() - kept);
  await Promise.all(elections.map((election) => election.close()));
  await backend[Symbol.asyncDispose]();
  return `led after ${(took / 1000).toFixed(1)} s; then ${rate.toFixed(1)} statements/s, ${share.toFixed(1)} % CPU`;
}
