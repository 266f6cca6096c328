/**
 * Somebody revokes the leader's lease, or deletes its key. How long does the old
 * leader go on believing after the next one leads? Both campaign in this process,
 * each with a connection of its own, so one clock measures both.
 */
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { parseEndpoint } from "../../src/backends/etcd/client/endpoint.js";
import { Election } from "../../src/election/election.js";
import type { GrpcEtcdClient } from "../../src/backends/etcd/client/grpc-client.js";
import type { KeyValue } from "../../src/backends/etcd/client.js";
import type { EtcdServer } from "../../test/support/etcd-server.js";
import { TcpProxy } from "../../test/support/tcp-proxy.js";
import { until } from "../../test/support/until.js";
import type { Row } from "../measure.js";

const RUNS = 100;
const SLOW_MS = 50;
const limits = { signal: new AbortController().signal, limitMs: 5_000 };

type Removal = (client: GrpcEtcdClient, leader: KeyValue) => Promise<void>;
const revoke: Removal = (client, leader) => client.leaseRevoke(leader.lease, limits);
const remove: Removal = (client, leader) => client.delete(leader.key, undefined, limits);

/** Milliseconds from the next one's leadership to the old one's end; negative: nobody led in between. */
async function overlaps(server: EtcdServer, name: string, slowMs: number, act: Removal): Promise<number[]> {
  const client = server.client();
  const proxy = await TcpProxy.start({ port: parseEndpoint(server.endpoints[0]!).port });
  const stand = (endpoint: string): Election =>
    new Election({ name, backend: etcdBackend({ endpoints: endpoint, env: {} }), closeBackend: true });
  const [slow, quick] = [stand(proxy.endpoint), stand(server.endpoints[0]!)];
  proxy.delay({ toClient: slowMs });
  const samples: number[] = [];
  for (let i = 0; i < RUNS; i++) {
    const term = await slow.campaign();
    let ended = 0;
    term.signal.addEventListener("abort", () => (ended = performance.now()));
    const next = quick.campaign();
    const queue = (): Promise<readonly KeyValue[]> =>
      client.range({ key: `${name}/`, rangeEnd: `${name}0`, sort: "oldest-first" }, limits);
    await until(async () => (await queue()).length === 2);
    await new Promise((resolve) => setTimeout(resolve, 150)); // a young watch is served later, see handover.ts
    await act(client, (await queue())[0]!);
    const successor = await next;
    const began = performance.now();
    await term.ended;
    samples.push(ended - began);
    await successor.resign();
  }
  await Promise.all([slow.close(), quick.close()]);
  await proxy.close();
  await client[Symbol.asyncDispose]();
  return samples;
}

function describe(samples: readonly number[]): string {
  const two = samples.filter((overlap) => overlap > 0);
  if (two.length === 0) return `none in ${samples.length} runs`;
  return `in ${two.length} of ${samples.length} runs, at most ${Math.max(...two).toFixed(1)} ms`;
}

export async function* byHand(server: EtcdServer): AsyncGenerator<Row> {
  for (const [what, act] of [
    ["lease revoked by hand", revoke],
    ["key deleted by hand", remove],
  ] as const) {
    const near = describe(await overlaps(server, `${what}/near`, 0, act));
    const far = describe(await overlaps(server, `${what}/far`, SLOW_MS, act));
    yield {
      what: `${what}: two leaders`,
      result: near,
      beside: `with ${SLOW_MS} ms from etcd to the old leader: ${far}`,
    };
  }
}
