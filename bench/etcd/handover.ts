/** How long one put takes, and how long the office is empty when its holder gives it up. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Etcd3 } from "etcd3";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/core/election.js";
import type { EtcdServer } from "../../test/support/etcd-server.js";
import { until } from "../../test/support/until.js";
import { type Row, show, type Summary, summarize } from "../measure.js";

const PUTS = 1_000;
const HANDOVERS = 250;
const WARM_UP = 20;
/**
 * A watch that begins at a revision of the past is served by etcd from a list it
 * goes through every 100 ms. Go's library begins there (ours one revision later,
 * so that it is served at once): a leader that resigns sooner than this after
 * the next has joined would add 50 ms to Go's figure.
 */
const SETTLED_MS = 150;
/** And this is what that looks like: a rolling restart, say. */
const JUST_JOINED_MS = 10;
const JUST_JOINED = 60;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function timed(count: number, act: () => Promise<unknown>): Promise<number[]> {
  const samples: number[] = [];
  for (let i = 0; i < count + WARM_UP; i++) {
    const started = performance.now();
    await act();
    if (i >= WARM_UP) samples.push(performance.now() - started);
  }
  return samples;
}

export async function* roundTrip(server: EtcdServer): AsyncGenerator<Row> {
  const client = server.client();
  const limits = { signal: new AbortController().signal, limitMs: 5_000 };
  const ours = await timed(PUTS, () => client.put("bench", "x", undefined, limits));
  await client[Symbol.asyncDispose]();
  const etcd3 = new Etcd3({ hosts: server.endpoints.map((endpoint) => `http://${endpoint}`) });
  const theirs = await timed(PUTS, async () => etcd3.put("bench").value("x"));
  etcd3.close();
  yield {
    what: "put, round trip",
    result: show(summarize(ours)),
    beside: `etcd3 (grpc-js): ${show(summarize(theirs))}`,
  };
}

/**
 * The same observer, the same signal, the same pipes: SIGINT to the leader's
 * process until the line of the next one's process is here. In turns, so that
 * whatever else the machine does meets all alike.
 */
export async function* handover(server: EtcdServer): AsyncGenerator<Row> {
  const settled = await inTurns(server, "settled", SETTLED_MS, HANDOVERS);
  yield row("graceful handover in the library, resign called to next in office", settled.library, settled);
  yield row("graceful handover between processes, SIGINT to the next one's word", settled.ours, settled);
  const joined = await inTurns(server, "joined", JUST_JOINED_MS, JUST_JOINED);
  yield row(
    `the same in the library, ${JUST_JOINED_MS} ms after the next has joined`,
    joined.library,
    joined,
  );
}

interface Results {
  readonly ours: Summary;
  readonly theirs: Summary;
  readonly library: Summary;
}

function row(what: string, mine: Summary, { theirs }: Results): Row {
  const ratio = (mine.median / theirs.median).toFixed(2);
  return { what, result: show(mine), beside: `etcdctl elect: ${show(theirs)}; ours is ${ratio} x` };
}

async function inTurns(server: EtcdServer, name: string, afterMs: number, count: number): Promise<Results> {
  const series = [
    processHandovers(server, `${name}-ours`, new Ours(server, `${name}-ours`), afterMs),
    processHandovers(server, `${name}-theirs`, new Etcdctl(server, `${name}-theirs`), afterMs),
    libraryHandovers(server, `${name}-library`, afterMs),
  ];
  const samples: number[][] = series.map(() => []);
  for (let i = 0; i < count + WARM_UP; i++) {
    for (const [which, one] of series.entries()) {
      const { value } = await one.next();
      if (i >= WARM_UP && typeof value === "number") samples[which]!.push(value);
    }
  }
  await Promise.all(series.map((one) => one.return()));
  const [ours, theirs, library] = samples.map(summarize);
  return { ours: ours!, theirs: theirs!, library: library! };
}

async function* libraryHandovers(
  server: EtcdServer,
  name: string,
  afterMs: number,
): AsyncGenerator<number, void> {
  const client = server.client();
  const limits = { signal: new AbortController().signal, limitMs: 5_000 };
  const standing = async (): Promise<number> =>
    (await client.range({ key: `${name}/`, rangeEnd: `${name}0`, keysOnly: true }, limits)).length;
  const elections = [0, 1].map(
    () =>
      new Election({
        name,
        backend: etcdBackend({ endpoints: server.endpoints, env: {} }),
        closeBackend: true,
      }),
  );
  let term = await elections[0]!.campaign();
  try {
    for (let i = 0; ; i++) {
      const next = elections[(i + 1) % 2]!.campaign();
      await until(async () => (await standing()) === 2);
      await pause(afterMs);
      const started = performance.now();
      void term.resign();
      const old = term;
      term = await next;
      const took = performance.now() - started;
      await old.ended;
      yield took;
    }
  } finally {
    await Promise.all(elections.map((election) => election.close()));
    await client[Symbol.asyncDispose]();
  }
}

/** Two candidates in processes of their own. */
interface Pair {
  /** Stands, or stands again. Resolves with the instant at which it said that it leads. */
  stand(): { readonly child: ChildProcess; readonly leads: Promise<number> };
  end(): Promise<void>;
}

/** When it said the next line. */
function said(lines: Interface): Promise<number> {
  return once(lines, "line").then(() => performance.now());
}

/** Each ends when it resigns, and a new one is started in time. */
class Etcdctl implements Pair {
  readonly #server: EtcdServer;
  readonly #name: string;
  #last: ChildProcess | undefined;

  constructor(server: EtcdServer, name: string) {
    this.#server = server;
    this.#name = name;
  }

  stand(): { child: ChildProcess; leads: Promise<number> } {
    const child = this.#server.etcdctlProcess("elect", this.#name, "candidate");
    this.#last = child;
    return { child, leads: said(createInterface({ input: child.stdout! })) };
  }

  async end(): Promise<void> {
    this.#last?.kill("SIGINT");
    if (this.#last) await once(this.#last, "exit");
  }
}

/** Two that take turns; each stands again by itself after it has resigned. */
class Ours implements Pair {
  readonly #server: EtcdServer;
  readonly #name: string;
  readonly #candidates: { readonly child: ChildProcess; readonly lines: Interface }[] = [];
  #turn = 0;

  constructor(server: EtcdServer, name: string) {
    this.#server = server;
    this.#name = name;
  }

  stand(): { child: ChildProcess; leads: Promise<number> } {
    const { child, lines } = (this.#candidates[this.#turn++ % 2] ??= this.#start());
    return { child, leads: said(lines) };
  }

  #start(): { child: ChildProcess; lines: Interface } {
    const script = fileURLToPath(new URL("elect.js", import.meta.url));
    const child = spawn(process.execPath, [script, this.#server.endpoints[0]!, this.#name], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    return { child, lines: createInterface({ input: child.stdout }) };
  }

  async end(): Promise<void> {
    await Promise.all(
      this.#candidates.map(async ({ child }) => {
        child.kill("SIGTERM");
        await once(child, "exit");
      }),
    );
  }
}

async function* processHandovers(
  server: EtcdServer,
  name: string,
  pair: Pair,
  afterMs: number,
): AsyncGenerator<number, void> {
  const client = server.client();
  const limits = { signal: new AbortController().signal, limitMs: 5_000 };
  const standing = async (): Promise<number> =>
    (await client.range({ key: `${name}/`, rangeEnd: `${name}0`, keysOnly: true }, limits)).length;
  let leader = pair.stand();
  await leader.leads;
  try {
    for (;;) {
      const next = pair.stand();
      await until(async () => (await standing()) === 2);
      await pause(afterMs);
      const started = performance.now();
      leader.child.kill("SIGINT");
      const took = (await next.leads) - started;
      leader = next;
      yield took;
    }
  } finally {
    await pair.end();
    await client[Symbol.asyncDispose]();
  }
}
