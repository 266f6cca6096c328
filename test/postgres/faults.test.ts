/** The fault table of the page, on a real server: what is not here is in failover, pooler and errors. */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Election } from "../../src/index.js";
import { postgresBackend } from "../../src/backends/postgres/index.js";
import type { CallOptions } from "../../src/index.js";
import { hasPostgres, PostgresServer } from "../support/postgres-server.js";
import { TcpProxy } from "../support/tcp-proxy.js";
import { until } from "../support/until.js";

/** One for each call: nobody waits on it longer. */
const call = (): CallOptions => ({ signal: new AbortController().signal });

describe.skipIf(!hasPostgres())("PostgreSQL in trouble", { timeout: 60_000 }, () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start({ settings: { synchronous_commit: "off" } });
  });
  afterAll(() => server?.stop());

  const election = (name: string, ttlMs: number, url = server.url()): Election =>
    new Election({ name, ttlMs, backend: postgresBackend({ url }), closeBackend: true });
  const listeners = async (): Promise<number[]> =>
    (
      await server.sql<{ pid: number }>(
        "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN conclave%'",
      )
    ).map(({ pid }) => pid);

  it("a server that restarts does not end a term", async () => {
    await using one = election("restart", 10_000);
    const term = await one.campaign();
    await server.kill();
    await server.begin();
    await until(async () => {
      const before = await server.sql<{ version: string }>(
        "SELECT version FROM conclave_record WHERE key = 'l:restart'",
      );
      return BigInt(before[0]!.version) > term.token;
    }, 20_000);
    expect(term.held).toBe(true);
    await term.resign();
  });

  it("the connection that listens is opened again, and a handover is pushed", async () => {
    await using one = election("listening", 30_000);
    await using two = election("listening", 30_000);
    const term = await one.campaign();
    const next = two.campaign();
    await until(async () => (await listeners()).length === 1);
    const [first] = await listeners();
    await server.sql("SELECT pg_terminate_backend($1)", [first]);
    await until(async () => (await listeners()).some((pid) => pid !== first));
    // Far sooner than the poll of two seconds that would find it otherwise.
    const began = performance.now();
    await term.resign();
    await next;
    expect(performance.now() - began).toBeLessThan(1_500);
  });

  it("a half-open connection is given up, and the next request dials", async () => {
    const proxy = await TcpProxy.start({ port: server.port });
    try {
      await using one = election("hole", 4_000, `postgres://postgres@${proxy.endpoint}/postgres`);
      const term = await one.campaign();
      proxy.blackHole();
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      proxy.heal();
      const version = async (): Promise<bigint> =>
        BigInt(
          (
            await server.sql<{ version: string }>("SELECT version FROM conclave_record WHERE key = 'l:hole'")
          )[0]!.version,
        );
      const before = await version();
      await until(async () => (await version()) > before, 10_000);
      expect(term.held).toBe(true);
      await term.resign();
    } finally {
      await proxy.close();
    }
  });

  it("a locked table: the server gives the statement up, and the term goes on afterwards", async () => {
    await using backend = postgresBackend({ url: server.url(), statementTimeoutMs: 300 });
    const one = new Election({ name: "locked", ttlMs: 6_000, backend });
    const term = await one.campaign();
    const other = await server.client();
    await other.query("BEGIN");
    await other.query("LOCK TABLE conclave_record");
    await expect(backend.records.read("x", call())).rejects.toThrow(/57014.*took too long/);
    await other.query("ROLLBACK");
    await other.end();
    await until(async () => (await backend.records.read("x", call())) === null);
    expect(term.held).toBe(true);
    await one.close();
  });

  it("a dropped table: the term ends, the next token is higher", async () => {
    await using one = election("dropped", 2_000);
    const term = await one.campaign();
    const ended = new Promise<string>((resolve) => {
      term.signal.addEventListener("abort", () => resolve("ended"));
    });
    await server.sql("DROP TABLE conclave_record");
    expect(await ended).toBe("ended");
    const next = await one.campaign();
    expect(next.token).toBeGreaterThan(term.token);
    await next.resign();
  });

  it("a pool that is used up: what got no connection is never sent", async () => {
    const pool = new pg.Pool({ connectionString: server.url(), max: 1 });
    await using backend = postgresBackend({ client: pool, listen: false });
    try {
      await backend.records.write("busy", null, "first", call());
      const busy = pool.query("SELECT pg_sleep(1)");
      const given = new AbortController();
      const late = backend.records.write("late", null, "too late", { signal: given.signal });
      given.abort(new Error("given up"));
      await expect(late).rejects.toThrow("given up");
      await busy;
      expect(await backend.records.read("late", call())).toBeNull();
    } finally {
      await pool.end();
    }
  });

  it("a client inside a transaction is refused", async () => {
    const client = await server.client();
    await using backend = postgresBackend({ client });
    await client.query("BEGIN");
    await expect(backend.records.write("tx", null, "x", call())).rejects.toThrow(/inside a transaction/);
    await client.query("ROLLBACK");
    expect(await backend.records.read("tx", call())).toBeNull();
    expect((await backend.records.write("tx", null, "x", call()))?.record).toBe("x");
    await client.end();
  });

  it("grants are synchronous although the server is not, and the session's setting stays", async () => {
    const client = await server.client();
    const seen: string[] = [];
    await using backend = postgresBackend({
      client: {
        query: async (text, values) => {
          const answer = await client.query<object>(text, values as unknown[]);
          seen.push(
            (await client.query<{ s: string }>("SELECT current_setting('synchronous_commit') AS s")).rows[0]!
              .s,
          );
          return answer;
        },
      },
    });
    // A trigger sees what is so at the moment of the write.
    await client.query(`CREATE TABLE raised (s text);
      CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO raised VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$;`);
    await backend.records.write("sync", null, "x", call());
    await client.query(
      "CREATE TRIGGER note AFTER INSERT OR UPDATE ON conclave_record FOR EACH ROW EXECUTE FUNCTION note()",
    );
    const entry = await backend.records.write("sync-2", null, "x", call());
    await backend.records.write("sync-2", entry!.version, "y", call());
    await client.query("DROP TRIGGER note ON conclave_record");
    expect((await client.query("SELECT s FROM raised")).rows).toEqual([{ s: "on" }, { s: "on" }]);
    expect(new Set(seen)).toEqual(new Set(["off"]));
    await client.end();
  });

  it("many elections of a process are renewed together, and no renewal notifies", async () => {
    const sent: string[] = [];
    const pool = new pg.Pool({ connectionString: server.url(), max: 4 });
    const client = {
      query: async (text: string, values?: unknown[]) => {
        sent.push(text.includes("unnest") ? `batch of ${(values![0] as string[]).length}` : text.slice(0, 6));
        // A server that takes its time: what becomes due meanwhile is sent together.
        await new Promise((resolve) => setTimeout(resolve, 50));
        return pool.query<object>(text, values as unknown[]);
      },
    };
    const backend = postgresBackend({ client });
    const heard: string[] = [];
    const listener = await server.client();
    listener.on("notification", ({ payload = "" }) => heard.push(payload));
    const elections = Array.from(
      { length: 200 },
      (_, i) => new Election({ name: `many-${i}`, ttlMs: 9_000, backend }),
    );
    const terms = await Promise.all(elections.map((one) => one.campaign()));
    const { channelOf } = await import("../../src/backends/postgres/table.js");
    await listener.query(`LISTEN ${channelOf({ schema: undefined, table: "conclave_record" })}`);
    sent.length = 0;
    await until(() => sent.some((text) => /batch of \d{2,}/.test(text)), 10_000);
    expect(terms.every((term) => term.held)).toBe(true);
    expect(heard).toEqual([]);
    await Promise.all(elections.map((one) => one.close()));
    await until(() => heard.length === 200);
    await listener.end();
    await backend[Symbol.asyncDispose]();
    await pool.end();
  });

  it("closing leaves no connection behind", async () => {
    const count = async (): Promise<number> =>
      Number(
        (
          await server.sql<{ n: string }>(
            "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'conclave'",
          )
        )[0]!.n,
      );
    const one = election("left", 5_000);
    const two = election("left", 5_000);
    const term = await one.campaign();
    const next = two.campaign().catch(() => {});
    await until(async () => (await count()) >= 3);
    await term.resign();
    await next;
    await one.close();
    await two.close();
    await until(async () => (await count()) === 0);
  });
});
