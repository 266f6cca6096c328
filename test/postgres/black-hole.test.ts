/**
 * A leader that is cut off without a word, 30 times with CONCLAVE_LONG=1, beside
 * a holder of an advisory lock on the same wire: never two of ours, and always a
 * next one; the advisory lock stays where nobody can use it.
 */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Election } from "../../src/index.js";
import { postgresBackend } from "../../src/backends/postgres/index.js";
import { hasPostgres, PostgresServer } from "../support/postgres-server.js";
import { TcpProxy } from "../support/tcp-proxy.js";

const ROUNDS = process.env["CONCLAVE_LONG"] === "1" ? 30 : 2;
const TTL_MS = 2_000;

describe.skipIf(!hasPostgres())("a leader in a black hole", { timeout: 30_000 * ROUNDS }, () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server?.stop());

  async function round(number: number): Promise<{ two: boolean; tookMs: number; advisoryFree: boolean }> {
    const proxy = await TcpProxy.start({ port: server.port });
    const cut = `postgres://postgres@${proxy.endpoint}/postgres`;
    const holder = new pg.Client({ connectionString: cut });
    holder.on("error", () => {});
    try {
      const open = (url: string): Election =>
        new Election({
          name: `hole-${number}`,
          ttlMs: TTL_MS,
          backend: postgresBackend({ url }),
          closeBackend: true,
        });
      await using one = open(cut);
      await using two = open(server.url());
      await holder.connect();
      await holder.query("SELECT pg_advisory_lock($1)", [number]);
      const term = await one.campaign();
      const next = two.campaign();
      await new Promise((resolve) => setTimeout(resolve, Math.random() * TTL_MS));
      const began = performance.now();
      proxy.blackHole();
      const later = await next;
      const answer = { two: term.held, tookMs: performance.now() - began };
      const [row] = await server.sql<{ free: boolean }>("SELECT pg_try_advisory_lock($1) AS free", [number]);
      expect(later.token).toBeGreaterThan(term.token);
      await later.resign();
      return { ...answer, advisoryFree: row!.free };
    } finally {
      holder.connection.stream.destroy();
      await proxy.close();
    }
  }

  it("is replaced, and never two lead", async () => {
    const all = [];
    for (let number = 0; number < ROUNDS; number++) all.push(await round(number));
    const times = all.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b);
    process.stderr.write(
      `black hole, ttl ${TTL_MS} ms: ${ROUNDS} times, two at once ${all.filter(({ two }) => two).length} times, replaced after ${Math.round(times[times.length >> 1]!)} ms (median), ${Math.round(times.at(-1)!)} ms (most); the advisory lock beside it was free by then ${all.filter(({ advisoryFree }) => advisoryFree).length} times\n`,
    );
    expect(all.filter(({ two }) => two)).toEqual([]);
  });
});
