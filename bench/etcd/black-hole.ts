/**
 * The leader's network swallows everything without a word. How long do two
 * candidates believe that they lead? Ttl 3 s, ours and the npm package etcd3.
 */
import { Etcd3 } from "etcd3";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { parseEndpoint } from "../../src/backends/etcd/client/endpoint.js";
import { Election } from "../../src/election/election.js";
import type { EtcdServer } from "../../test/support/etcd-server.js";
import { TcpProxy } from "../../test/support/tcp-proxy.js";
import type { Row } from "../measure.js";

const RUNS = 30;
const TTL_MS = 3_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** From the moment the second leads until the first knows that it does not; negative: nobody led in between. */
type Overlap = number;

async function ours(server: EtcdServer, run: number): Promise<Overlap> {
  const proxy = await TcpProxy.start({ port: parseEndpoint(server.endpoints[0]!).port });
  const stand = (endpoint: string): Election =>
    new Election({
      name: `hole/${run}`,
      backend: etcdBackend({ endpoints: endpoint, env: {} }),
      ttlMs: TTL_MS,
      closeBackend: true,
    });
  const [a, b] = [stand(proxy.endpoint), stand(server.endpoints[0]!)];
  const term = await a.campaign();
  let ended = Infinity;
  term.signal.addEventListener("abort", () => (ended = performance.now()));
  const next = b.campaign();
  await pause(1_000 + Math.random() * TTL_MS);
  proxy.blackHole();
  await next;
  const began = performance.now();
  const overlap = term.held;
  await term.ended;
  await Promise.all([a.close(), b.close()]);
  await proxy.close();
  return overlap ? performance.now() - began : ended - began;
}

async function theirs(server: EtcdServer, run: number): Promise<Overlap> {
  const proxy = await TcpProxy.start({ port: parseEndpoint(server.endpoints[0]!).port });
  const open = (endpoint: string): Etcd3 => new Etcd3({ hosts: `http://${endpoint}` });
  const [clientA, clientB] = [open(proxy.endpoint), open(server.endpoints[0]!)];
  const stand = (client: Etcd3, value: string) =>
    client.election(`hole-${run}`, TTL_MS / 1000).campaign(value);
  const a = stand(clientA, "a");
  await new Promise((resolve) => a.once("elected", resolve));
  const lost = new Promise<number>((resolve) => a.once("error", () => resolve(performance.now())));
  const b = stand(clientB, "b");
  b.on("error", () => {});
  const won = new Promise<number>((resolve) => b.once("elected", () => resolve(performance.now())));
  await pause(1_000 + Math.random() * TTL_MS);
  proxy.blackHole();
  const began = await won;
  const ended = await lost;
  a.on("error", () => {});
  await b.resign().catch(() => {});
  clientA.close();
  clientB.close();
  await proxy.close();
  return ended - began;
}

function describe(overlaps: readonly Overlap[]): string {
  const two = overlaps.filter((overlap) => overlap > 0);
  if (two.length === 0) {
    const gap = -Math.max(...overlaps);
    return `never two leaders in ${overlaps.length} runs; smallest gap ${Math.round(gap)} ms`;
  }
  const worst = Math.max(...two);
  return `two leaders in ${two.length} of ${overlaps.length} runs, for up to ${(worst / 1000).toFixed(1)} s`;
}

export async function* blackHole(server: EtcdServer): AsyncGenerator<Row> {
  const runs = Array.from({ length: RUNS }, (_, i) => i);
  const a = await Promise.all(runs.map((run) => ours(server, run)));
  const b = await Promise.all(runs.slice(0, 10).map((run) => theirs(server, run)));
  yield { what: "leader in a black hole, ttl 3 s", result: describe(a), beside: `etcd3: ${describe(b)}` };
}
