/**
 * Three servers and an agent, as in production: the leader of the servers killed, stopped and woken, all restarted in
 * turn, and one server that loses its data. Short: each once. Long: many times.
 */
import { describe, expect, it } from "vitest";
import type { Election } from "../../src/index.js";
import { isConclaveError } from "../../src/index.js";
import { consulElection } from "../support/consul-elections.js";
import { ConsulServer, hasConsul } from "../support/consul-server.js";
import { until } from "../support/until.js";

const LONG = process.env["CONCLAVE_LONG"] === "1";
const TIMES = LONG ? { killed: 20, stopped: 10, restarts: 2 } : { killed: 1, stopped: 1, restarts: 0 };
const TTL_MS = 10_000;

/** Candidates that lead in turn, and what was seen of them. */
class Watched {
  readonly tokens: bigint[] = [];
  readonly problems: string[] = [];
  readonly #stop = new AbortController();
  readonly #running: Promise<unknown>;
  readonly #probe: NodeJS.Timeout;

  constructor(readonly elections: readonly Election[]) {
    for (const election of elections)
      election.on("elected", ({ term }) => {
        const last = this.tokens.at(-1) ?? -1n;
        if (term.token <= last) this.problems.push(`token ${term.token} after ${last}`);
        this.tokens.push(term.token);
        this.#look();
      });
    this.#probe = setInterval(() => this.#look(), 20);
    this.#running = Promise.all(
      elections.map((election) =>
        election.run(
          (term) => new Promise<void>((resolve) => term.signal.addEventListener("abort", () => resolve())),
          { signal: this.#stop.signal },
        ),
      ),
    );
  }

  get leads(): boolean {
    return this.elections.some((election) => election.leading);
  }

  async end(): Promise<void> {
    clearInterval(this.#probe);
    this.#stop.abort();
    await this.#running;
    for (const election of this.elections) await election.close();
  }

  #look(): void {
    const leading = this.elections.filter((election) => election.leading);
    if (leading.length > 1) this.problems.push(`${leading.length} lead at once`);
  }
}

describe.skipIf(!hasConsul())("Consul in trouble", () => {
  it(
    "servers killed, stopped and restarted: never two, at most one change for each fault, nobody stuck",
    async () => {
      const server = await ConsulServer.start({ servers: 3, agent: true });
      const candidates = [1, 2, 3].map((id) =>
        consulElection(server, "cluster", { id: `c${id}`, ttlMs: TTL_MS }),
      );
      const watched = new Watched(candidates);
      let faults = 0;
      const recovered = async (): Promise<void> => {
        faults++;
        await server.ready();
        await until(() => watched.leads, 5 * TTL_MS);
      };
      try {
        await until(() => watched.leads, 30_000);
        for (let i = 0; i < TIMES.killed; i++) {
          const leader = await server.leader();
          await leader.kill();
          await until(async () => (await server.leader()) !== leader, 30_000);
          leader.start();
          await recovered();
        }
        for (let i = 0; i < TIMES.stopped; i++) {
          const leader = await server.leader();
          leader.signal("SIGSTOP");
          await new Promise((resolve) => setTimeout(resolve, LONG ? TTL_MS : 4_000));
          leader.signal("SIGCONT");
          await recovered();
        }
        for (let i = 0; i < TIMES.restarts; i++) {
          for (const node of server.nodes) {
            await node.kill();
            node.start();
            await recovered();
          }
        }
      } finally {
        await watched.end();
        await server.stop();
      }
      expect(watched.problems).toEqual([]);
      expect(watched.tokens.length).toBeLessThanOrEqual(1 + faults);
    },
    LONG ? 1_800_000 : 120_000,
  );

  it("a server that lost its data: nobody leads with a lower token without a word", async () => {
    const server = await ConsulServer.start();
    const elections = [1, 2].map((id) => consulElection(server, "wiped", { id: `w${id}` }));
    const errors: unknown[] = [];
    for (const election of elections) election.on("error", ({ error }) => errors.push(error));
    let watched: Watched | undefined;
    try {
      for (let i = 0; i < 100; i++) await server.api("PUT", "/v1/kv/filler", String(i));
      watched = new Watched(elections);
      await until(() => watched!.leads, 20_000);
      // Each has met the token that will be too high.
      for (const election of elections) await until(async () => (await election.leader()) !== null);
      await new Promise((resolve) => setTimeout(resolve, 500));
      await server.entry.kill();
      await server.entry.wipe();
      server.entry.start();
      await server.ready();
      await until(
        () => errors.some((error) => isConclaveError(error) && error.code === "token-regression"),
        30_000,
      );
      expect(watched.tokens.length).toBe(1);
      expect(watched.problems).toEqual([]);
      // Raised, as the message says: then somebody leads.
      for (let i = 0; i < 150; i++) await server.api("PUT", "/v1/kv/filler", String(i));
      await until(() => watched!.leads, 30_000);
      expect(watched.tokens[1]).toBeGreaterThan(watched.tokens[0]!);
    } finally {
      await watched?.end();
      await server.stop();
    }
  }, 120_000);
});
