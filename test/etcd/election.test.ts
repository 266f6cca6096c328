import { once } from "node:events";
import { createInterface } from "node:readline";
import type { ChildProcess } from "node:child_process";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import type { EtcdOptions } from "../../src/backends/etcd/index.js";
import type { GrpcEtcdClient } from "../../src/backends/etcd/client/grpc-client.js";
import type { BackendWithRecords, Leader } from "../../src/seam/backend.js";
import { Election } from "../../src/election/election.js";
import type { ElectionOptions } from "../../src/api/options.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { until } from "../support/until.js";

const TTL = 3_000;

describe.skipIf(!hasEtcd())("elections on etcd", () => {
  let server: EtcdServer;
  let client: GrpcEtcdClient;
  const cleanups: (() => Promise<unknown>)[] = [];
  let names = 0;

  beforeAll(async () => {
    server = await EtcdServer.start();
    client = server.client();
  });

  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  afterAll(async () => {
    await client[Symbol.asyncDispose]();
    await server.stop();
  });

  const limits = { signal: new AbortController().signal, limitMs: 5_000 };
  const freshName = (): string => `/election/t${++names}`;

  function open(options: EtcdOptions = {}): BackendWithRecords {
    const backend = etcdBackend({ endpoints: server.endpoints, env: {}, ...options });
    cleanups.push(async () => backend[Symbol.asyncDispose]());
    return backend;
  }

  function stand(name: string, options: Partial<ElectionOptions> = {}): Election {
    const election = new Election({ name, backend: open(), ttlMs: TTL, ...options });
    cleanups.push(() => election.close());
    return election;
  }

  const keysOf = async (name: string): Promise<string[]> =>
    (await client.range({ key: `${name}/`, rangeEnd: `${name}0`, sort: "oldest-first" }, limits)).map(
      (kv) => kv.key,
    );

  function etcdctl(...args: string[]): { child: ChildProcess; lines: string[] } {
    const child = server.etcdctlProcess(...args);
    const lines: string[] = [];
    createInterface({ input: child.stdout! }).on("line", (line) => lines.push(line));
    cleanups.push(async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    });
    return { child, lines };
  }

  async function interrupt(child: ChildProcess): Promise<void> {
    const exited = once(child, "exit");
    child.kill("SIGINT");
    await exited;
  }

  it("wins, publishes, hands over in the order of arrival, with rising tokens", async () => {
    const name = freshName();
    const [a, b, c] = [stand(name, { value: "a" }), stand(name, { value: "b" }), stand(name, { value: "c" })];
    const first = await a.campaign();
    expect(first.held).toBe(true);
    expect(await b.leader()).toMatchObject({ value: "a", token: first.token });
    const second = b.campaign();
    await until(async () => (await keysOf(name)).length === 2);
    const third = c.campaign();
    await until(async () => (await keysOf(name)).length === 3);
    await first.resign();
    const termB = await second;
    expect(first.held).toBe(false);
    expect(termB.token > first.token).toBe(true);
    expect(c.leading).toBe(false);
    await termB.resign();
    const termC = await third;
    expect(termC.token > termB.token).toBe(true);
    await termC.proclaim("c2");
    expect(await a.leader()).toMatchObject({ value: "c2", token: termC.token });
    await termC.resign();
    expect(await keysOf(name)).toEqual([]);
    expect(await a.leader()).toBe(null);
  });

  it("keeps its term over many ttls, and ends it when it is closed", async () => {
    const name = freshName();
    const election = stand(name);
    const term = await election.campaign();
    await new Promise((resolve) => setTimeout(resolve, 2.2 * TTL));
    expect(term.held).toBe(true);
    await election.close();
    expect(await keysOf(name)).toEqual([]);
  });

  it("tries once without joining the queue", async () => {
    const name = freshName();
    const [a, b] = [stand(name), stand(name)];
    const term = await a.tryCampaign();
    expect(term?.held).toBe(true);
    expect(await b.tryCampaign()).toBe(null);
    expect(await keysOf(name)).toHaveLength(1);
    await term!.resign();
    expect((await b.tryCampaign())?.held).toBe(true);
  });

  it("shares one lease among the elections of a backend, and gives rivals in it leases of their own", async () => {
    const backend = open();
    const name = freshName();
    const options = { backend, ttlMs: TTL };
    const elections = Array.from({ length: 20 }, (_, i) => stand(`${name}-${i}`, options));
    await Promise.all(elections.map((election) => election.campaign()));
    const leases = new Set(
      (await client.range({ key: name, rangeEnd: `${name}0` }, limits)).map((kv) => kv.lease),
    );
    expect(leases.size).toBe(1);
    const rival = stand(`${name}-0`, options);
    const won = rival.campaign();
    await until(async () => (await keysOf(`${name}-0`)).length === 2);
    await elections[0]!.resign();
    expect((await won).held).toBe(true);
    expect(elections[1]!.leading).toBe(true); // resigning one took nothing from the others
  });

  it("leaves no key behind when a campaign is cancelled", async () => {
    const name = freshName();
    const [a, b] = [stand(name), stand(name)];
    await a.campaign();
    const controller = new AbortController();
    const waiting = b.campaign({ signal: controller.signal });
    await until(async () => (await keysOf(name)).length === 2);
    controller.abort(new Error("changed my mind"));
    await expect(waiting).rejects.toThrow("changed my mind");
    await until(async () => (await keysOf(name)).length === 1, 1_000);
  });

  it("goes on waiting when a candidate before it gives up", async () => {
    const name = freshName();
    const [a, b, c] = [stand(name), stand(name), stand(name)];
    const term = await a.campaign();
    const middle = new AbortController();
    const second = b.campaign({ signal: middle.signal }).catch(() => undefined);
    await until(async () => (await keysOf(name)).length === 2);
    const third = c.campaign();
    await until(async () => (await keysOf(name)).length === 3);
    middle.abort();
    await second;
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect([term.held, c.leading]).toEqual([true, false]);
    await term.resign();
    expect((await third).held).toBe(true);
  });

  it.each(["elect", "lock"])("campaigns in one queue with etcdctl %s, both ways round", async (command) => {
    const name = freshName();
    const ours = stand(name, { value: "ours" });
    const term = await ours.campaign();
    const theirs = etcdctl(command, name, ...(command === "elect" ? ["theirs"] : []));
    await until(async () => (await keysOf(name)).length === 2);
    const after = stand(name, { value: "after" });
    const waiting = after.campaign();
    await until(async () => (await keysOf(name)).length === 3);
    expect(theirs.lines).toEqual([]);
    await term.resign();
    await until(() => theirs.lines.length > 0); // theirs leads: it prints its key
    expect((await keysOf(name))[0]).toBe(theirs.lines[0]);
    expect(after.leading).toBe(false);
    expect(await ours.leader()).toMatchObject({ value: command === "elect" ? "theirs" : "" });
    await interrupt(theirs.child);
    const next = await waiting;
    expect(next.held).toBe(true);
    if (command === "lock") return;
    const listening = etcdctl("elect", "-l", name);
    await until(() => listening.lines.length >= 2);
    expect(listening.lines[1]).toBe("after"); // they see ours, and its value
  });

  it("ends the term when the lease is revoked by hand, and campaigns again", async () => {
    const name = freshName();
    const election = stand(name);
    const terms: bigint[] = [];
    const running = new AbortController();
    const run = election.run(
      async (term) => {
        terms.push(term.token);
        await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
      },
      { signal: running.signal },
    );
    await until(() => terms.length === 1);
    const term = election.term!;
    const [key] = await keysOf(name);
    const started = performance.now();
    await server.etcdctl("lease", "revoke", key!.split("/").at(-1)!);
    expect(await term.ended).toMatchObject({ reason: "revoked" });
    expect(performance.now() - started).toBeLessThan(TTL);
    await until(() => terms.length === 2);
    expect(terms[1]! > terms[0]!).toBe(true);
    running.abort();
    await run;
  });

  it("ends the term when its key is deleted by hand, while others on the lease stay", async () => {
    const name = freshName();
    const backend = open();
    const [a, b] = [stand(name, { backend }), stand(`${name}-other`, { backend })];
    const term = await a.campaign();
    const other = await b.campaign();
    await server.etcdctl("del", (await keysOf(name))[0]!);
    expect(await term.ended).toMatchObject({ reason: "revoked" });
    expect((await a.campaign()).token > term.token).toBe(true);
    expect(other.held).toBe(true);
  });

  it("does not wait forever when its own place in the queue was taken away", async () => {
    const name = freshName();
    const [a, b] = [stand(name), stand(name)];
    const term = await a.campaign();
    const waiting = b.campaign();
    await until(async () => (await keysOf(name)).length === 2);
    const lost = (await keysOf(name))[1]!;
    await server.etcdctl("del", lost);
    await until(async () => (await keysOf(name)).length === 2); // campaigns again
    await term.resign();
    expect((await waiting).held).toBe(true);
  });

  it("waits and observes through compaction", async () => {
    const name = freshName();
    const [a, b] = [stand(name, { value: "a" }), stand(name, { value: "b" })];
    const seen: (string | null)[] = [];
    const stop = new AbortController();
    const watching = (async () => {
      for await (const leader of stand(name).observe({ signal: stop.signal }))
        seen.push(leader?.value ?? null);
    })();
    const term = await a.campaign();
    const waiting = b.campaign();
    await until(async () => (await keysOf(name)).length === 2);
    for (let round = 0; round < 3; round++) {
      await client.put("noise", String(round), undefined, limits);
      const { revision } = await client.transaction(
        { when: [], then: [{ kind: "range", key: "noise" }], otherwise: [] },
        limits,
      );
      await server.etcdctl("compact", String(revision));
    }
    await term.resign();
    await waiting;
    await until(() => seen.at(-1) === "b");
    expect(seen.filter((value) => value !== null)).toEqual(["a", "b"]);
    stop.abort();
    await watching;
  });

  it("never reports the second candidate while the first leads", async () => {
    const name = freshName();
    const leaders: (Leader | null)[] = [];
    const stop = new AbortController();
    const watching = (async () => {
      for await (const leader of stand(name).observe({ signal: stop.signal })) leaders.push(leader);
    })();
    const tokens: bigint[] = [];
    const [a, b] = [stand(name), stand(name)];
    let [leading, waiting] = [a, b];
    let term = await leading.campaign();
    for (let i = 0; i < 10; i++) {
      tokens.push(term.token);
      const next = waiting.campaign();
      await until(async () => (await keysOf(name)).length === 2);
      await term.resign();
      term = await next;
      [leading, waiting] = [waiting, leading];
    }
    tokens.push(term.token);
    await until(() => leaders.at(-1)?.token === term.token);
    const seen = leaders.flatMap((leader) => (leader === null ? [] : [leader.token]));
    expect(seen).toEqual([...seen].sort((x, y) => (x < y ? -1 : 1)));
    expect(seen.every((token) => tokens.includes(token))).toBe(true);
    stop.abort();
    await watching;
  });

  it("refuses to take a nested election's candidate for its own", async () => {
    const name = freshName();
    const inner = stand(`${name}/beef`);
    await inner.campaign();
    await expect(stand(name).campaign()).rejects.toMatchObject({ code: "conflict" });
    expect(await keysOf(name)).toHaveLength(1); // and left nothing behind
    expect(inner.leading).toBe(true);
  });

  it("stands beside a hand-written program with one key (layout=key)", async () => {
    const name = freshName();
    const key = async (): Promise<string | undefined> =>
      (await client.range({ key: name }, limits))[0]?.value;
    const { id } = await client.leaseGrant(60n, limits);
    await client.put(name, "theirs", id, limits);
    const [a, b] = [
      stand(name, { backend: open({ layout: "key" }), value: "a" }),
      stand(name, { backend: open({ layout: "key" }), value: "b" }),
    ];
    expect(await a.tryCampaign()).toBe(null);
    expect(await a.leader()).toMatchObject({ value: "theirs", candidate: id.toString(16) });
    const race = [a.campaign(), b.campaign()];
    await client.leaseRevoke(id, limits);
    const term = await Promise.race(race);
    expect(await key()).toBe(a.leading ? "a" : "b");
    expect([a.leading, b.leading].filter(Boolean)).toHaveLength(1);
    const other = a.leading ? race[1]! : race[0]!;
    await term.resign();
    expect((await other).token > term.token).toBe(true);
  });

  it("keeps records by compare-and-swap", async () => {
    const { records } = open({ prefix: "/app" });
    const options = { signal: limits.signal };
    expect(await records.read("cron/a", options)).toBe(null);
    const first = await records.write("cron/a", null, "1", options);
    expect(await records.write("cron/a", null, "2", options)).toBe(null);
    const second = await records.write("cron/a", first!.version, "2", options);
    expect(second!.version > first!.version).toBe(true);
    expect(await records.read("cron/a", options)).toEqual(second);
    expect(await client.range({ key: "/app/conclave.records/cron/a" }, limits)).toHaveLength(1);
  });

  it("waits for a server that is not there yet", async () => {
    const late = await EtcdServer.start();
    const member = late.members[0]!;
    await member.kill();
    const backend = open({ endpoints: late.endpoints });
    const election = stand("late", { backend });
    const errors: unknown[] = [];
    election.on("error", ({ error }) => errors.push(error));
    const won = election.campaign();
    await until(() => errors.length >= 2);
    expect(String(errors[0])).toContain("ECONNREFUSED");
    member.start();
    expect((await won).held).toBe(true);
    await election.close();
    await backend[Symbol.asyncDispose]();
    await late.stop();
  });
});
