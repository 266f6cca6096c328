/**
 * How handover, renewal and memory grow: with the elections of one process, and
 * with the candidates of one election. The figures go to artifacts/growth.json
 * too, from which `npm run growth-plot` draws docs/growth.svg.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/election/election.js";
import { EtcdServer } from "../../test/support/etcd-server.js";
import { until } from "../../test/support/until.js";
import { machineMs } from "../machine-clock.js";
import { type Row, summarize } from "../measure.js";
import { requests } from "./idle.js";
import { PeerProcess } from "./peer-process.js";

const ELECTIONS = [10, 100, 1_000, 10_000].filter(
  (count) => count <= Number(process.env["BENCH_ELECTIONS"] ?? 10_000),
);
const CANDIDATES = [3, 30, 300];
const HANDOVERS = 20;
const REST_MS = 50;
/** Three renewals of a ttl of 10 s. */
const IDLE_MS = 10_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export interface Growth {
  readonly elections: readonly {
    readonly count: number;
    readonly handoverMs: number;
    readonly renewalCpuMs: number;
    readonly residentMB: number;
  }[];
  readonly candidates: readonly {
    readonly count: number;
    readonly handoverMs: number;
    readonly requestsEach: number;
  }[];
}

async function withHolder<T>(
  mode: "elections" | "candidates",
  count: number,
  act: (server: EtcdServer, holder: PeerProcess) => Promise<T>,
): Promise<T> {
  const server = await EtcdServer.start();
  const holder = new PeerProcess({ script: "growth-holder.js" }, server.endpoints[0]!, mode, String(count));
  try {
    await holder.said("ready");
    return await act(server, holder);
  } finally {
    await holder.kill();
    await server.stop();
  }
}

function ofElections(count: number): Promise<Growth["elections"][number]> {
  return withHolder("elections", count, async (server, holder) => {
    await pause(IDLE_MS); // every key was read once
    const cpu = holder.cpuSeconds;
    await pause(IDLE_MS);
    const renewalCpuMs = ((holder.cpuSeconds - cpu) * 1_000) / 3;
    const residentMB = holder.resident("VmRSS") / 1e6;
    const client = server.client();
    const limits = { signal: new AbortController().signal, limitMs: 5_000 };
    const range = { key: "many/0/", rangeEnd: "many/00", keysOnly: true };
    await using backend = etcdBackend({ endpoints: server.endpoints, env: {} });
    await using election = new Election({ name: "many/0", backend, ttlMs: 10_000 });
    const samples: number[] = [];
    for (let i = 0; i < HANDOVERS; i++) {
      const next = election.campaign();
      await until(async () => (await client.range(range, limits)).length === 2);
      await pause(REST_MS);
      const resigning = holder.next("resigning");
      const back = holder.next("back");
      holder.tell("resign");
      const term = await next;
      samples.push(machineMs() - Number((await resigning)["at"]));
      await term.resign();
      await back;
    }
    await client[Symbol.asyncDispose]();
    return { count, handoverMs: summarize(samples).median, renewalCpuMs, residentMB };
  });
}

function ofCandidates(count: number): Promise<Growth["candidates"][number]> {
  return withHolder("candidates", count, async (server, holder) => {
    const client = server.client();
    const limits = { signal: new AbortController().signal, limitMs: 5_000 };
    const crowd = { key: "crowd/", rangeEnd: "crowd0", keysOnly: true };
    const all = async (): Promise<boolean> => (await client.range(crowd, limits)).length === count;
    const samples: number[] = [];
    let asked = 0;
    for (let i = 0; i < HANDOVERS; i++) {
      await until(all, 60_000);
      await pause(REST_MS);
      const before = await requests(server);
      const handover = holder.next("handover");
      holder.tell("resign");
      samples.push(Number((await handover)["ms"]));
      asked += (await requests(server)) - before;
    }
    await client[Symbol.asyncDispose]();
    return { count, handoverMs: summarize(samples).median, requestsEach: asked / HANDOVERS };
  });
}

export async function* growth(): AsyncGenerator<Row> {
  const figures = {
    elections: [] as Growth["elections"][number][],
    candidates: [] as Growth["candidates"][number][],
  };
  for (const count of ELECTIONS) {
    const one = await ofElections(count);
    figures.elections.push(one);
    yield {
      what: `growth: ${count.toLocaleString("en")} elections in one process`,
      result: `handover ${one.handoverMs.toFixed(1)} ms, ${one.renewalCpuMs.toFixed(1)} ms of CPU a renewal, ${Math.round(one.residentMB)} MB resident`,
    };
  }
  for (const count of CANDIDATES) {
    const one = await ofCandidates(count);
    figures.candidates.push(one);
    yield {
      what: `growth: ${count} candidates for one election`,
      result: `handover ${one.handoverMs.toFixed(1)} ms, ${one.requestsEach.toFixed(1)} messages to etcd a handover, with renewals and one new candidate`,
    };
  }
  mkdirSync("artifacts", { recursive: true });
  writeFileSync("artifacts/growth.json", `${JSON.stringify(figures satisfies Growth, null, 2)}\n`);
}
