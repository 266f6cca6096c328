/**
 * Ten thousand elections in one process, held and taken over, by Conclave and by a
 * program on etcd's own Go library: each on a server of its own, one after the other.
 */
import { EtcdServer } from "../../test/support/etcd-server.js";
import { until } from "../../test/support/until.js";
import type { Row } from "../measure.js";
import { perSecond } from "./idle.js";
import { goPeer } from "./go-peer.js";
import { PeerProcess } from "./peer-process.js";

const ELECTIONS = Number(process.env["BENCH_ELECTIONS"] ?? 10_000);
const REST_MS = 10_000;
const IDLE_MS = 20_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

interface Scale {
  readonly wonMs: number;
  readonly peakBytes: number;
  readonly restBytes: number;
  readonly idlePercent: number;
  readonly requests: number;
  readonly standMs: number;
  readonly spreadMs: number;
}

async function measure(start: (endpoint: string) => PeerProcess): Promise<Scale> {
  const server = await EtcdServer.start();
  const processes: PeerProcess[] = [];
  const begin = (): PeerProcess => {
    const one = start(server.endpoints[0]!);
    processes.push(one);
    return one;
  };
  try {
    const first = begin();
    const wonMs = Number((await first.said("all"))["wonMs"]);
    await pause(REST_MS);
    const peakBytes = first.resident("VmHWM");
    const [before, began] = [first.cpuSeconds, performance.now()];
    const requests = await perSecond(server, IDLE_MS);
    const idlePercent = ((first.cpuSeconds - before) * 100_000) / (performance.now() - began);
    const restBytes = first.resident("VmRSS");
    const [second, entered] = [begin(), performance.now()];
    await until(async () => {
      await pause(250);
      return (await keys(server)) >= 2 * ELECTIONS;
    }, 300_000);
    const standMs = performance.now() - entered;
    await pause(REST_MS);
    await first.kill();
    const [one, all] = [Number((await second.said("first"))["at"]), Number((await second.said("all"))["at"])];
    return { wonMs, peakBytes, restBytes, idlePercent, requests, standMs, spreadMs: all - one };
  } finally {
    await Promise.all(processes.map((one) => one.kill()));
    await server.stop();
  }
}

/** Keys in the store, by the server's own count. */
async function keys(server: EtcdServer): Promise<number> {
  const page = await (await fetch(`http://${server.endpoints[0]}/metrics`)).text();
  return Number(/^etcd_debugging_mvcc_keys_total (\S+)$/m.exec(page)?.[1] ?? "0");
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

export async function* scale(): AsyncGenerator<Row> {
  const go = await goPeer();
  const count = String(ELECTIONS);
  const ours = await measure((endpoint) => new PeerProcess({ script: "scale-holder.js" }, endpoint, count));
  const theirs =
    go === undefined
      ? undefined
      : await measure((endpoint) => new PeerProcess({ path: go }, "many", endpoint, count));
  const label = `${ELECTIONS.toLocaleString("en")} elections in one process`;
  const row = (
    what: string,
    pick: (scale: Scale) => number,
    show: (value: number) => string,
    goal: string,
  ): Row => {
    const mine = pick(ours);
    const figures = show(mine);
    if (theirs === undefined)
      return { what: `${label}: ${what}`, result: figures, beside: `Go is not installed; goal: ${goal}` };
    const peers = pick(theirs);
    return {
      what: `${label}: ${what}`,
      result: `${(mine / peers).toFixed(2)} x Go (${figures})`,
      beside: `Go: ${show(peers)}; goal: ${goal}`,
    };
  };
  yield row("all won after", ({ wonMs }) => wonMs, seconds, "at most 2 x Go");
  yield row("resident at most", ({ peakBytes }) => peakBytes, megabytes, "at most 320 MB");
  yield row("resident at rest", ({ restBytes }) => restBytes, megabytes, "at most 320 MB");
  yield row(
    "CPU when idle, ttl 10 s",
    ({ idlePercent }) => idlePercent,
    (value) => `${value.toFixed(2)} %`,
    "at most 0.5 %",
  );
  yield row(
    "requests/s when idle",
    ({ requests }) => requests,
    (value) => value.toFixed(2),
    "two per ttl/3",
  );
  yield row("a second process stands behind all after", ({ standMs }) => standMs, seconds, "-");
  yield row(
    "leader killed: from the first to the last that the second leads",
    ({ spreadMs }) => spreadMs,
    seconds,
    "at most 1 x Go",
  );
}
