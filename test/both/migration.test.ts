/**
 * A fleet of real processes moves from one store to another and back by rolling
 * updates, while its leaders are killed and other elections keep both stores busy:
 * at no instant two of them lead.
 * CONCLAVE_LONG=1: more rounds, and every pair of stores that is here.
 */
import { once } from "node:events";
import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readHistory } from "../../src/testing/race/history.js";
import { claimsOf, overlaps } from "../../src/testing/race/rules.js";
import { openElection } from "../../src/index.js";
import { backends } from "../support/backends.js";
import { startCandidate } from "../support/children.js";
import { until } from "../support/until.js";

const long = process.env["CONCLAVE_LONG"] === "1";
const ROUNDS = long ? 5 : 1;
const REPLICAS = 3;
const TTL_MS = 2_000;
/** No store keeps a shorter lease than this many milliseconds under the ttl of these tests; others are given more. */
const LONG_TTL_MS = 10_000;

const directory = mkdtempSync(join(tmpdir(), "conclave-migration-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const bothUrl = (a: string, b: string): string =>
  `both:?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`;

interface Replica {
  readonly child: ChildProcess;
  readonly closed: Promise<unknown>;
  leads: boolean;
}

class Fleet {
  readonly #replicas = new Set<Replica>();
  #started = 0;

  constructor(
    readonly history: string,
    readonly ttlMs: number,
  ) {}

  get leaders(): number {
    return [...this.#replicas].filter(({ leads }) => leads).length;
  }

  start(url: string): void {
    const history = join(this.history, `${++this.#started}.jsonl`);
    const child = startCandidate({ url, election: "moving", ttlMs: this.ttlMs, history });
    const replica: Replica = { child, closed: once(child, "close"), leads: false };
    child.stdout!.on("data", (text: Buffer) => {
      for (const event of String(text).matchAll(/"ev":"(leading|stopped)"/g))
        replica.leads = event[1] === "leading";
    });
    this.#replicas.add(replica);
  }

  /** One after the other, the leader last and half of the time without a word; somebody leads before the next one goes. */
  async roll(url: string): Promise<void> {
    const old = [...this.#replicas].sort((x, y) => Number(x.leads) - Number(y.leads));
    for (const replica of old) {
      this.start(url);
      await this.end(replica, Math.random() < 0.5 ? "SIGKILL" : "SIGTERM");
      await until(() => this.leaders > 0, 60_000);
    }
  }

  /** The leader dies without a word, and another replica takes its place in the fleet. */
  async killLeader(url: string): Promise<void> {
    const leader = [...this.#replicas].find(({ leads }) => leads);
    if (leader === undefined) return;
    await this.end(leader, "SIGKILL");
    this.start(url);
    await until(() => this.leaders > 0, 60_000);
  }

  async end(replica: Replica, signal: NodeJS.Signals): Promise<void> {
    replica.child.kill(signal);
    await replica.closed;
    this.#replicas.delete(replica);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#replicas].map((replica) => this.end(replica, "SIGTERM")));
  }
}

const pairs = backends
  .flatMap((a) => backends.filter((b) => b !== a).map((b) => [a, b] as const))
  .filter(([a, b]) => a.name > b.name)
  .filter(([a, b]) => long || (b.name === "etcd" && ["file", "postgres"].includes(a.name)));

/** Elections of others on the same stores, taken and given back without a pause, until it is ended. */
async function load(urls: readonly string[], lanes: number): Promise<() => Promise<number>> {
  const stop = new AbortController();
  let cycles = 0;
  const busy = urls.flatMap((url) =>
    Array.from({ length: lanes }, async (_, lane) => {
      const election = await openElection({ name: `load-${lane}`, backend: url, ttlMs: LONG_TTL_MS });
      try {
        for (; !stop.signal.aborted; cycles++) await (await election.campaign()).resign();
      } finally {
        await election.close();
      }
    }),
  );
  return async () => {
    stop.abort();
    await Promise.all(busy);
    return cycles;
  };
}

describe.skipIf(pairs.length === 0)("a fleet that moves", () => {
  it("in one step, without both(), has two leaders: the check sees it", async () => {
    const [[a, b]] = pairs as [(typeof pairs)[number]];
    const [urlA, urlB] = await Promise.all([a.open(), b.open()]);
    const history = mkdtempSync(join(directory, "fleet-"));
    const fleet = new Fleet(history, LONG_TTL_MS);
    try {
      fleet.start(urlA);
      fleet.start(urlB);
      await until(() => fleet.leaders === 2, 60_000);
      // A claim reaches as far as the leader's last note of it: both must have noted it once more.
      await until(() => overlaps("moving", claimsOf(readHistory(history))).length > 0, 30_000);
    } finally {
      await fleet.stop();
    }
  }, 120_000);

  it.each(pairs.map(([a, b]) => ({ name: `${a.name} and ${b.name}`, a, b })))(
    "from one store to the other and back has one leader at any instant: $name",
    async ({ a, b }) => {
      const [urlA, urlB] = await Promise.all([a.open(), b.open()]);
      const history = mkdtempSync(join(directory, "fleet-"));
      const ttlMs = [a, b].some(({ name }) => name === "consul" || name === "zookeeper")
        ? LONG_TTL_MS
        : TTL_MS;
      const fleet = new Fleet(history, ttlMs);
      const idle = await load([urlA, urlB], 2);
      let cycles = 0;
      try {
        for (let i = 0; i < REPLICAS; i++) fleet.start(urlA);
        await until(() => fleet.leaders > 0, 60_000);
        const there = [bothUrl(urlB, urlA), bothUrl(urlA, urlB), urlB];
        const back = [bothUrl(urlA, urlB), bothUrl(urlB, urlA), urlA];
        for (let round = 0; round < ROUNDS; round++)
          for (const url of [...there, ...back]) {
            await fleet.roll(url);
            await fleet.killLeader(url);
          }
      } finally {
        await fleet.stop();
        cycles = await idle();
      }
      const claims = claimsOf(readHistory(history));
      console.log(
        `${a.name} and ${b.name}: ${claims.length} terms while the fleet moved ${6 * ROUNDS} times beside ${cycles} terms of others`,
      );
      expect(cycles).toBeGreaterThan(0);
      // Two for each step, but for a leader that falls in the middle of one: it is then neither rolled last nor killed.
      expect(claims.length).toBeGreaterThanOrEqual(10 * ROUNDS);
      expect(overlaps("moving", claims)).toEqual([]);
    },
    long ? 1_800_000 : 240_000,
  );
});
