/**
 * CONCLAVE_LONG=1: failover by Sentinel, 20 times with quarantine and 20 times
 * without, each with a grant that the replicas never got. CONCLAVE_ROUNDS changes the number.
 */
import { describe, expect, it } from "vitest";
import { openRedis } from "../../src/backends/redis/index.js";
import type { RedisOptions } from "../../src/backends/redis/index.js";
import { Election } from "../../src/election/election.js";
import { RedisSentinels } from "../support/redis-groups.js";
import { hasRedis } from "../support/redis-server.js";
import { TcpProxy } from "../support/tcp-proxy.js";
import { until } from "../support/until.js";

const LONG = process.env["CONCLAVE_LONG"] === "1";
const say = (line: string): void => void process.stderr.write(`${line}\n`);
const ROUNDS = Number(process.env["CONCLAVE_ROUNDS"] ?? 20);
/** Longer than Sentinel takes, or the old leader would have stopped before there is a server to elect another. */
const TTL_MS = 8_000;

async function round(quarantine: boolean): Promise<{ overlapMs: number; rises: boolean }> {
  let wire: TcpProxy | undefined;
  const group = await RedisSentinels.start(async (port) => {
    wire = await TcpProxy.start({ port });
    return wire.port;
  });
  const [primary] = group.servers;
  const stand = async (url: string, options: RedisOptions): Promise<Election> =>
    new Election({
      name: "failover",
      backend: await openRedis(url, options),
      ttlMs: TTL_MS,
      closeBackend: true,
    });
  // The first is only there to be forgotten: on servers that have just been started it would wait.
  const a = await stand(primary!.url, { quarantine: false });
  const b = await stand(group.url, { quarantine });
  try {
    // Replicas and Sentinels hear nothing of the primary any more, its client does: the grant is lost.
    wire!.blackHole();
    const term = await a.campaign();
    let ended = Infinity;
    term.signal.addEventListener("abort", () => (ended = performance.now()));
    await primary!.kill();
    const next = await b.campaign();
    const began = performance.now();
    const two = term.held;
    await until(() => ended !== Infinity, 2 * TTL_MS).catch(() => {});
    return {
      overlapMs: two ? Math.min(ended, performance.now()) - began : 0,
      rises: next.token > term.token,
    };
  } finally {
    await Promise.all([a.close(), b.close()]);
    await group.stop();
    await wire!.close();
  }
}

describe.skipIf(!hasRedis() || !LONG)("failover by Sentinel", () => {
  it.each([true, false])(
    "quarantine %s",
    async (quarantine) => {
      const results = [];
      for (let index = 0; index < ROUNDS; index++) results.push(await round(quarantine));
      const two = results.filter(({ overlapMs }) => overlapMs > 0);
      const worst = Math.max(0, ...two.map(({ overlapMs }) => overlapMs));
      say(
        `Sentinel failover, quarantine ${quarantine}: two leaders in ${two.length} of ${ROUNDS}, for up to ${(worst / 1000).toFixed(1)} s`,
      );
      expect(results.every(({ rises }) => rises)).toBe(true);
      if (quarantine) expect(two).toEqual([]);
    },
    60_000 * ROUNDS,
  );
});
