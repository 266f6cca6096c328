/**
 * What goes wrong with Consul, row by row. Elsewhere: a deposed server (cluster.test.ts, and the simulator), a silent
 * connection and lost answers (test/conformance/consul.test.ts). Without a test: lock delays that are lost when all
 * servers restart (nothing can be done, documented), invalidations that Consul itself retries, stale reads (every
 * read is consistent), rate limits (1.8.7 has none; a 429 is an unknown, as any other status).
 */
import { setMaxListeners } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { consulBackend } from "../../src/backends/consul/index.js";
import { consulElection, CountingSend } from "../support/consul-elections.js";
import { ConsulServer, hasConsul } from "../support/consul-server.js";
import { until } from "../support/until.js";

describe.skipIf(!hasConsul())("failures of Consul", () => {
  let server: ConsulServer;
  beforeAll(async () => {
    server = await ConsulServer.start();
  });
  afterAll(() => server.stop());

  const sessionOf = async (name: string): Promise<string> => {
    const [kv] = (await server.api("GET", `/v1/kv/test/${name}/.lock`)) as { Session: string }[];
    return kv!.Session;
  };

  it("a node that leaves ends its sessions at once: nobody leads before the old leader's deadline", async () => {
    let cut = false;
    const counting = new CountingSend(server.address);
    const send: typeof counting.send = (request, signal) =>
      cut ? Promise.reject(new Error("cut off")) : counting.send(request, signal);
    await using holder = consulElection(server, "leaves", { ttlMs: 6_000, consul: { send } });
    await using challenger = consulElection(server, "leaves", { ttlMs: 6_000 });
    const old = await holder.campaign();
    const campaign = challenger.campaign();
    await until(async () => (await challenger.leader())?.token === old.token);
    await until(() => counting.long > 0); // the one that would tell it
    cut = true;
    counting.abort();
    // As `consul leave` and the removal of a dead node do.
    await server.api("PUT", "/v1/catalog/deregister", { Node: server.entry.name });
    await until(async () => (await challenger.leader()) === null);
    // Consul has freed the lock while the old leader rightly believes that it leads.
    expect(old.held).toBe(true);
    // Consul itself looks for nodes that must be entered again once a minute.
    const serf = { CheckID: "serfHealth", Name: "Serf Health Status", Status: "passing" };
    const node = { Node: server.entry.name, Address: "127.0.0.1", Check: serf };
    await server.api("PUT", "/v1/catalog/register", node);
    const next = await campaign;
    expect(old.held).toBe(false);
    expect(next.token).toBeGreaterThan(old.token);
    cut = false;
  }, 150_000);

  it("a lock delay is waited out, not polled", async () => {
    const counting = new CountingSend(server.address);
    await using holder = consulElection(server, "delay", { ttlMs: 3_000 });
    await using challenger = consulElection(server, "delay", { consul: { send: counting.send } });
    const old = await holder.campaign();
    const campaign = challenger.campaign();
    await until(() => counting.long > 0);
    const from = counting.asked.length;
    const destroyedAt = performance.now();
    await server.api("PUT", `/v1/session/destroy/${await sessionOf("delay")}`);
    expect((await old.ended).reason).toBe("revoked");
    await holder.close();
    await campaign;
    expect(performance.now() - destroyedAt).toBeGreaterThan(2_900);
    const locks = counting.asked.slice(from).filter(({ body }) => body?.includes('"Verb":"lock"'));
    expect(locks.length).toBeLessThanOrEqual(3); // at once, when the delay is over, and once more if a timer was early
  });

  it("a leader that is known to be dead is followed at once, if its lock is released for it", async () => {
    let dead = false;
    const counting = new CountingSend(server.address);
    const send: typeof counting.send = (request, signal) =>
      dead ? Promise.reject(new Error("dead")) : counting.send(request, signal);
    const holder = consulElection(server, "dead", { ttlMs: 30_000, consul: { send } });
    await using challenger = consulElection(server, "dead", { ttlMs: 30_000 });
    const old = await holder.campaign();
    const campaign = challenger.campaign();
    dead = true;
    await using backend = consulBackend({ address: server.address, prefix: "test", env: {} });
    const claim = { election: "dead", candidate: holder.candidate, token: old.token };
    const options = { signal: new AbortController().signal };
    expect(await backend.release!({ ...claim, token: old.token + 1n }, options)).toBe("not-held");
    expect(await backend.release!(claim, options)).toBe("released");
    expect((await campaign).token).toBeGreaterThan(old.token);
    dead = false;
    await holder.close();
  });

  it("a key that is deleted by hand ends the term", async () => {
    await using holder = consulElection(server, "deleted");
    const term = await holder.campaign();
    await server.api("DELETE", "/v1/kv/test/deleted/.lock");
    expect((await term.ended).reason).toBe("revoked");
    expect((await holder.campaign()).token).toBeGreaterThan(term.token);
  });

  it("a value published over a changed key, and a key written over by hand: the term goes on", async () => {
    await using holder = consulElection(server, "written");
    const term = await holder.campaign();
    await term.proclaim("one");
    await server.api("PUT", "/v1/kv/test/written/.lock?flags=3304740253564472344", "by hand");
    await term.proclaim("two");
    expect(await holder.leader()).toMatchObject({ token: term.token, value: "two" });
    await term.resign();
    expect(await holder.leader()).toBeNull();
  });

  it("many elections share one session and one blocking query", async () => {
    const count = 60;
    const counting = new CountingSend(server.address);
    const options = { address: server.address, prefix: "many", minTtlMs: 1_000, env: {} };
    await using first = consulBackend(options);
    await using second = consulBackend({ ...options, send: counting.send });
    const { signal } = new AbortController();
    setMaxListeners(0, signal);
    const candidacy = (election: string, candidate: string): Parameters<typeof first.campaign>[0] => ({
      ...{ election, candidate, value: "", ttlMs: 60_000, retryMs: 1_000, attemptMs: 10_000 },
    });
    const names = Array.from({ length: count }, (_, i) => `e${i}`);
    const holds = await Promise.all(
      names.map((name) => first.campaign(candidacy(name, "a"), { wait: true, signal })),
    );
    const waiting = names.map((name) => second.campaign(candidacy(name, "b"), { wait: true, signal }));
    await until(() => counting.asked.some(({ path }) => path.includes("recurse")));
    await Promise.all(holds.map(async (hold) => hold?.release({ signal })));
    const won = await Promise.all(waiting);
    expect(won.filter((hold) => hold !== null).length).toBe(count);
    expect(counting.mostLong).toBeLessThanOrEqual(10);
    expect(counting.asked.filter(({ path }) => path.startsWith("/v1/session/create")).length).toBe(1);
    await Promise.all(won.map(async (hold) => hold?.release({ signal })));
  });
});
