/** How long one put takes, and how long leadership is empty when its holder gives it up. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Etcd3 } from "etcd3";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/election/election.js";
import type { EtcdServer } from "../../test/support/etcd-server.js";
import { until } from "../../test/support/until.js";
import { type Row, show, type Summary, summarize } from "../measure.js";
import { machineMs } from "../machine-clock.js";
import { goPeer } from "./go-peer.js";

const PUTS = 1_000;
const HANDOVERS = Number(process.env["BENCH_HANDOVERS"] ?? 240);
const WARM_UP = 20;
/**
 * So many of the one, then of the other: often enough for whatever else the
 * machine does to meet both alike, and seldom enough for the one not to pay for
 * the other's (a new process for each handover of etcdctl's).
 */
const BLOCK = 20;
/**
 * A watch that begins at a revision of the past is served by etcd from a list it
 * goes through every 100 ms. Go's library begins there (ours from now on, so that
 * it is served at once): a leader that resigns sooner than this after the next
 * has joined would add 50 ms to Go's figure.
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
 * Handovers one after the other in one process: what the library itself takes.
 * Then candidates in processes of their own that have waited a while, as they do
 * in earnest, so that their caches are cold: from the call of `resign()` in the
 * one process to the term in the other; and seen from outside: the same observer,
 * the same signal, the same pipes as for etcdctl, SIGINT to the leader's process
 * until the line of the next one's process is here.
 */
export async function* handover(server: EtcdServer): AsyncGenerator<Row> {
  const settled = await inTurns(server, "settled", SETTLED_MS, HANDOVERS);
  yield row("graceful handover, one after the other, resign() to the next leading", settled.busy, settled);
  yield row(`between processes, after ${SETTLED_MS} ms of rest`, settled.inside, settled);
  yield row("the same from outside, SIGINT to the next one's word", settled.ours, settled);
  const joined = await inTurns(server, "joined", JUST_JOINED_MS, JUST_JOINED);
  yield row(`between processes, ${JUST_JOINED_MS} ms after the next has joined`, joined.inside, joined);
}

interface Results {
  readonly busy: Summary;
  readonly inside: Summary;
  readonly ours: Summary;
  readonly theirs: Summary;
  /** A program on etcd's own Go library, where Go is installed. */
  readonly go: { readonly inside: Summary; readonly outside: Summary } | undefined;
}

function row(what: string, mine: Summary, { theirs, go, ours }: Results): Row {
  const ratio = (peer: Summary): string => (mine.median / peer.median).toFixed(2);
  const peer = mine === ours ? go?.outside : go?.inside;
  const besideGo = peer === undefined ? "" : `Go: ${show(peer)}; ours is ${ratio(peer)} x; `;
  return {
    what,
    result: show(mine),
    beside: `${besideGo}etcdctl elect: ${show(theirs)}; ours is ${ratio(theirs)} x`,
  };
}

async function inTurns(server: EtcdServer, name: string, afterMs: number, count: number): Promise<Results> {
  const [endpoint = ""] = server.endpoints;
  const script = fileURLToPath(new URL("elect.js", import.meta.url));
  const ours = new Standing(process.execPath, script, endpoint, `${name}-ours`);
  const program = await goPeer();
  const series = [
    libraryHandovers(server, `${name}-library`),
    handovers(server, `${name}-ours`, ours, afterMs),
    handovers(server, `${name}-theirs`, new Etcdctl(server, `${name}-theirs`), afterMs),
    ...(program === undefined
      ? []
      : [handovers(server, `${name}-go`, new Standing(program, "elect", endpoint, `${name}-go`), afterMs)]),
  ];
  const samples: Handover[][] = series.map(() => []);
  for (let done = -WARM_UP; done < count; done += BLOCK) {
    for (const [which, one] of series.entries()) {
      for (let i = 0; i < BLOCK; i++) {
        const { value } = await one.next();
        if (done >= 0 && value) samples[which]!.push(value);
      }
    }
  }
  await Promise.all(series.map((one) => one.return()));
  const [library = [], mine = [], theirs = [], go] = samples;
  const inside = (all: readonly Handover[]): Summary =>
    summarize(all.map(({ insideMs }) => insideMs ?? Number.NaN));
  const outside = (all: readonly Handover[]): Summary =>
    summarize(all.map(({ outsideMs }) => outsideMs ?? Number.NaN));
  return {
    ...{ busy: inside(library), inside: inside(mine), ours: outside(mine), theirs: outside(theirs) },
    go: go === undefined ? undefined : { inside: inside(go), outside: outside(go) },
  };
}

interface Handover {
  /** From the signal to the next one's word, as the observer sees it. */
  readonly outsideMs?: number;
  /** From the call of `resign()` to the next one's term, where we are told when that was. */
  readonly insideMs?: number | undefined;
}

/** A word somebody said, and when the observer heard it. */
interface Word {
  readonly heardAt: number;
  readonly saidAt: number | undefined;
}

/** One stay in the queue and leading. */
interface Candidate {
  readonly child: ChildProcess;
  readonly leads: Promise<Word>;
  /** Not said by programs that end. */
  readonly resigned?: Promise<Word>;
}

/** Two candidates that take turns. */
interface Pair {
  stand(): Candidate;
  end(): Promise<void>;
}

/** The next line, or the next that begins with this. */
function word(lines: Interface, begin = ""): Promise<Word> {
  return new Promise((resolve) => {
    const listen = (line: string): void => {
      if (!line.startsWith(begin)) return;
      lines.off("line", listen);
      resolve({ heardAt: machineMs(), saidAt: begin === "" ? undefined : Number(line.slice(begin.length)) });
    };
    lines.on("line", listen);
  });
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

  stand(): Candidate {
    const child = this.#server.etcdctlProcess("elect", this.#name, "candidate");
    this.#last = child;
    return { child, leads: word(createInterface({ input: child.stdout! })) };
  }

  async end(): Promise<void> {
    this.#last?.kill("SIGINT");
    if (this.#last) await once(this.#last, "exit");
  }
}

/** Each campaigns again after it has resigned, when it is told to. */
class Standing implements Pair {
  /** Program and arguments. */
  readonly #command: readonly [string, ...string[]];
  readonly #processes: { readonly child: ChildProcess; readonly lines: Interface }[] = [];
  #turn = 0;

  constructor(...command: readonly [string, ...string[]]) {
    this.#command = command;
  }

  stand(): Candidate {
    const turn = this.#turn++ % 2;
    this.#processes[turn]?.child.kill("SIGUSR2");
    const { child, lines } = (this.#processes[turn] ??= this.#start());
    return { child, leads: word(lines, "leads "), resigned: word(lines, "resigned ") };
  }

  #start(): { child: ChildProcess; lines: Interface } {
    const [program, ...args] = this.#command;
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
    return { child, lines: createInterface({ input: child.stdout }) };
  }

  async end(): Promise<void> {
    await Promise.all(
      this.#processes.map(async ({ child }) => {
        child.kill("SIGUSR2"); // for the one that waits for it
        child.kill("SIGTERM");
        await once(child, "exit");
      }),
    );
  }
}

/** How many stand. */
function queue(server: EtcdServer, name: string): { standing(): Promise<number>; close(): Promise<void> } {
  const client = server.client();
  const limits = { signal: new AbortController().signal, limitMs: 5_000 };
  const range = { key: `${name}/`, rangeEnd: `${name}0`, keysOnly: true };
  return {
    standing: async () => (await client.range(range, limits)).length,
    close: async () => client[Symbol.asyncDispose](),
  };
}

/** Two candidates in this process, each with its own connection; the leader resigns as soon as the other stands. */
async function* libraryHandovers(server: EtcdServer, name: string): AsyncGenerator<Handover, void> {
  const { standing, close } = queue(server, name);
  const elections = [0, 1].map(() => {
    const backend = etcdBackend({ endpoints: server.endpoints, env: {} });
    return new Election({ name, backend, closeBackend: true });
  });
  let term = await elections[0]!.campaign();
  try {
    for (let i = 0; ; i++) {
      const next = elections[(i + 1) % 2]!.campaign();
      while ((await standing()) < 2);
      const old = term;
      const startedAt = machineMs();
      void old.resign();
      term = await next;
      const insideMs = machineMs() - startedAt;
      await old.ended;
      yield { insideMs };
    }
  } finally {
    await Promise.all(elections.map((election) => election.close()));
    await close();
  }
}

async function* handovers(
  server: EtcdServer,
  name: string,
  pair: Pair,
  afterMs: number,
): AsyncGenerator<Handover, void> {
  const { standing, close } = queue(server, name);
  let leader = pair.stand();
  await leader.leads;
  try {
    for (;;) {
      const next = pair.stand();
      await until(async () => (await standing()) === 2);
      await pause(afterMs);
      const startedAt = machineMs();
      leader.child.kill("SIGINT");
      const { heardAt, saidAt } = await next.leads;
      const resignedAt = (await leader.resigned)?.saidAt;
      leader = next;
      yield {
        outsideMs: heardAt - startedAt,
        insideMs: saidAt !== undefined && resignedAt !== undefined ? saidAt - resignedAt : undefined,
      };
    }
  } finally {
    await pair.end();
    await close();
  }
}
