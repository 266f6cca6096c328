/** What an election that does nothing costs the server. */
import { setMaxListeners } from "node:events";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/election/election.js";
import type { EtcdServer } from "../../test/support/etcd-server.js";
import { until } from "../../test/support/until.js";
import type { Row } from "../measure.js";

const TTL_MS = 10_000;
const FOLLOWERS = 20;

/** Requests and stream messages the server has received so far, by its own count. */
export async function requests(server: EtcdServer): Promise<number> {
  const page = await (await fetch(`http://${server.endpoints[0]}/metrics`)).text();
  return [...page.matchAll(/^grpc_server_msg_received_total\{.*\} (\S+)$/gm)].reduce(
    (sum, match) => sum + Number(match[1]),
    0,
  );
}

export async function perSecond(server: EtcdServer, ms: number): Promise<number> {
  const [before, started] = [await requests(server), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, ms));
  return ((await requests(server)) - before) / ((performance.now() - started) / 1000);
}

export async function* idle(server: EtcdServer): AsyncGenerator<Row> {
  const client = server.client();
  const limits = { signal: new AbortController().signal, limitMs: 5_000 };
  const elections = Array.from(
    { length: 1 + FOLLOWERS },
    () =>
      new Election({
        name: "idle",
        backend: etcdBackend({ endpoints: server.endpoints, env: {} }),
        ttlMs: TTL_MS,
        closeBackend: true,
      }),
  );
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const runs = elections.map((election) =>
    election.run((term) => new Promise((resolve) => term.signal.addEventListener("abort", () => resolve())), {
      signal: stop.signal,
    }),
  );
  await until(
    async () =>
      (await client.range({ key: "idle/", rangeEnd: "idle0", keysOnly: true }, limits)).length ===
      elections.length,
  );
  await client[Symbol.asyncDispose]();
  const rate = await perSecond(server, 3 * TTL_MS);
  const goal = (elections.length * 2) / (TTL_MS / 3000);
  yield {
    what: `1 leader and ${FOLLOWERS} followers in ${elections.length} backends, ttl 10 s, idle`,
    result: `${rate.toFixed(1)} requests/s`,
    beside: `two per ttl/3 and backend are ${goal.toFixed(1)}`,
  };
  stop.abort();
  await Promise.all(runs);
  await Promise.all(elections.map((election) => election.close()));
}
