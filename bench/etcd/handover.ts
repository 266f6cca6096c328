/** How long one put takes, and how long the office is empty when its holder gives it up. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { Etcd3 } from "etcd3";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/core/election.js";
import type { EtcdServer } from "../../test/support/etcd-server.js";
import { until } from "../../test/support/until.js";
import { type Row, show, summarize } from "../measure.js";

const PUTS = 1_000;
const HANDOVERS = 250;
const WARM_UP = 50;

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

export async function* handover(server: EtcdServer): AsyncGenerator<Row> {
  const ours = summarize(await oursHandover(server));
  const theirs = summarize(await etcdctlHandover(server));
  yield {
    what: "graceful handover, resign called to next in office",
    result: show(ours),
    beside: `etcdctl elect: ${show(theirs)}; ours is ${(ours.median / theirs.median).toFixed(2)} x`,
  };
}

async function oursHandover(server: EtcdServer): Promise<number[]> {
  const client = server.client();
  const limits = { signal: new AbortController().signal, limitMs: 5_000 };
  const standing = async (): Promise<number> =>
    (await client.range({ key: "ours/", rangeEnd: "ours0", keysOnly: true }, limits)).length;
  const elections = [0, 1].map(
    () =>
      new Election({
        name: "ours",
        backend: etcdBackend({ endpoints: server.endpoints, env: {} }),
        closeBackend: true,
      }),
  );
  const samples: number[] = [];
  let term = await elections[0]!.campaign();
  for (let i = 0; i < HANDOVERS + WARM_UP; i++) {
    const next = elections[(i + 1) % 2]!.campaign();
    await until(async () => (await standing()) === 2);
    const started = performance.now();
    void term.resign();
    const old = term;
    term = await next;
    if (i >= WARM_UP) samples.push(performance.now() - started);
    await old.ended;
  }
  await Promise.all(elections.map((election) => election.close()));
  await client[Symbol.asyncDispose]();
  return samples;
}

interface Elect {
  readonly child: ChildProcess;
  /** When it printed its key: it leads. */
  readonly leads: Promise<number>;
}

function elect(server: EtcdServer, i: number): Elect {
  const child = server.etcdctlProcess("elect", "theirs", `candidate ${i}`);
  const leads = once(createInterface({ input: child.stdout! }), "line").then(() => performance.now());
  return { child, leads };
}

async function etcdctlHandover(server: EtcdServer): Promise<number[]> {
  const client = server.client();
  const limits = { signal: new AbortController().signal, limitMs: 5_000 };
  const standing = async (): Promise<number> =>
    (await client.range({ key: "theirs/", rangeEnd: "theirs0", keysOnly: true }, limits)).length;
  const samples: number[] = [];
  let leader = elect(server, 0);
  await leader.leads;
  for (let i = 1; i <= HANDOVERS; i++) {
    const next = elect(server, i);
    await until(async () => (await standing()) === 2);
    await new Promise((resolve) => setTimeout(resolve, 20)); // its watch is armed after its key is there
    const exited = once(leader.child, "exit");
    const started = performance.now();
    leader.child.kill("SIGINT");
    samples.push((await next.leads) - started);
    await exited;
    leader = next;
  }
  leader.child.kill("SIGINT");
  await once(leader.child, "exit");
  await client[Symbol.asyncDispose]();
  return samples;
}
