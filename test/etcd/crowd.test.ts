/** More elections on one lease than one transaction can look at, on a real server. */
import { afterEach, describe, expect, it } from "vitest";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/election/election.js";
import type { Term } from "../../src/api/term.js";
import { Bench } from "../support/contest.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { until } from "../support/until.js";

const TTL = 6_000;
/** A transaction takes 128 operations, and a waiting candidate key needs two. */
const ELECTIONS = 200;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.skipIf(!hasEtcd())("etcd: 200 elections on one lease", () => {
  const bench = new Bench();
  afterEach(() => bench.cleanUp());

  async function standIn(server: EtcdServer): Promise<Election[]> {
    const backend = etcdBackend({ endpoints: server.endpoints, env: {} });
    bench.onEnd(async () => backend[Symbol.asyncDispose]());
    return Array.from({ length: ELECTIONS }, (_, i) => {
      const election = new Election({ name: `crowd/${i}`, backend, ttlMs: TTL });
      bench.onEnd(() => election.close());
      return election;
    });
  }

  const lead = (elections: readonly Election[]): Promise<Term[]> =>
    Promise.all(elections.map((election) => election.campaign()));

  it("all are renewed; a key that vanishes ends its own term alone", { timeout: 120_000 }, async () => {
    const server = await EtcdServer.start();
    bench.onEnd(() => server.stop());
    const terms = await lead(await standIn(server));
    const next = lead(await standIn(server));
    next.catch(() => {});
    await pause(1.5 * TTL); // every term has been renewed several times, or has expired
    expect(terms.filter((term) => !term.held)).toEqual([]);
    expect(Number(await leases(server))).toBe(2);

    const victim = terms[ELECTIONS - 1]!;
    const [key] = await keysOf(server, victim);
    await server.etcdctl("del", key!);
    expect((await victim.ended).reason).toBe("revoked");
    expect(terms.filter((term) => !term.held)).toEqual([victim]);

    await Promise.all(terms.map((term) => term.resign()));
    const heirs = await next;
    await until(() => heirs.every((term) => term.held));
    for (const [i, heir] of heirs.entries()) expect(heir.token > terms[i]!.token).toBe(true);
  });

  async function leases(server: EtcdServer): Promise<string | undefined> {
    return /found (\d+) leases/.exec(await server.etcdctl("lease", "list"))?.[1];
  }

  /** Of one election, the oldest first. */
  async function keysOf(server: EtcdServer, { election }: Term): Promise<string[]> {
    const order = ["--sort-by", "CREATE", "--order", "ASCEND", "--keys-only"];
    const out = await server.etcdctl("get", `${election}/`, "--prefix", ...order);
    return out.split("\n").filter((line) => line !== "");
  }
});
