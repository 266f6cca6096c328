/** One lease under many terms: kept once, read from the clock, ended for all. */
import { afterEach, expect, test } from "vitest";
import type { Backend, Candidacy, Extension, Hold, Term } from "../../src/index.js";
import { Election, memoryBackend, readClocks } from "../../src/index.js";
import type { Session, SessionFollower } from "../../src/seam/backend.js";
import { VirtualClock } from "../../src/testing/index.js";

const TTL_MS = 10_000;
/** 15 % of the ttl. */
const MARGIN_MS = 1_500;

/** A backend that keeps one session for all its holds, renewed by hand. */
class SessionBackend implements Backend, Session {
  readonly name = "session";
  readonly guarantees = memoryBackend().guarantees;
  readonly records = memoryBackend().records;
  readonly released: bigint[] = [];
  readonly followers = new Set<SessionFollower>();
  /** Renewals that core asked for by itself. */
  renewals = 0;
  extension: Extension;
  readonly #clock: VirtualClock;
  #token = 0n;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
    this.extension = { asked: readClocks(clock) };
  }

  follow(follower: SessionFollower): () => void {
    this.followers.add(follower);
    return () => this.followers.delete(follower);
  }

  async campaign({ ttlMs }: Candidacy): Promise<Hold> {
    const token = ++this.#token;
    return {
      ...{ token, ttlMs, asked: this.extension.asked, session: this },
      renew: async () => {
        this.renewals++;
        return this.extension;
      },
      proclaim: async () => this.extension,
      release: async () => void this.released.push(token),
    };
  }

  /** The session is extended by a question asked now. */
  extend(): void {
    this.extension = { asked: readClocks(this.#clock) };
    for (const follower of this.followers) follower.attempted({ latencyMs: 1 });
  }

  fail(error: Error): void {
    for (const follower of this.followers) follower.attempted({ latencyMs: 1, error });
  }

  lose(): void {
    for (const follower of this.followers) follower.lost();
  }

  async *observe(): AsyncGenerator<null> {
    yield null;
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

const open: Election[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((election) => election.close()));
});

function elections(count: number): { clock: VirtualClock; backend: SessionBackend; all: Election[] } {
  const clock = new VirtualClock();
  const backend = new SessionBackend(clock);
  const all = Array.from(
    { length: count },
    (_, i) => new Election({ name: `e${i}`, backend, clock, ttlMs: TTL_MS, id: "c" }),
  );
  open.push(...all);
  return { clock, backend, all };
}

const lead = (all: readonly Election[]): Promise<Term[]> =>
  Promise.all(all.map((election) => election.campaign()));

test("terms on one session are kept by one watchdog and no renewal of core's own", async () => {
  const { clock, backend, all } = elections(50);
  const terms = await lead(all);
  expect(backend.followers.size).toBe(1);
  expect(clock.timers).toBe(1);
  await clock.advance(8_000);
  expect(backend.renewals).toBe(0);
  expect(terms.every(({ held }) => held)).toBe(true);
});

test("an extension of the session counts for every term, from its question on", async () => {
  const { clock, backend, all } = elections(3);
  const terms = await lead(all);
  await clock.advance(5_000);
  backend.extend();
  await clock.advance(2_000);
  for (const term of terms) expect(term.remainingMs).toBe(TTL_MS - MARGIN_MS - 2_000);
});

test("without an extension all end at the deadline, and nothing is released", async () => {
  const { clock, backend, all } = elections(3);
  const terms = await lead(all);
  await clock.advance(TTL_MS - MARGIN_MS);
  expect(terms.map(({ end }) => end?.reason)).toEqual(["expired", "expired", "expired"]);
  expect(backend.released).toEqual([]);
  expect(backend.followers.size).toBe(0);
});

test("a session that is lost ends every term on it, whatever their number, and none is held meanwhile", async () => {
  const { clock, backend, all } = elections(1_000);
  const terms = await lead(all);
  backend.lose();
  expect(terms.some(({ held }) => held)).toBe(false);
  await clock.advance(100);
  expect(new Set(terms.map(({ end }) => end?.reason))).toEqual(new Set(["revoked"]));
  expect(backend.released).toEqual([]);
});

test("an extension that comes after the deadline revives nothing", async () => {
  const { clock, backend, all } = elections(1);
  const [term] = await lead(all);
  clock.stall(TTL_MS);
  backend.extend();
  expect(term?.held).toBe(false);
});

test("a term whose work does not stop is not extended by its session, and is released at its deadline", async () => {
  const { clock, backend, all } = elections(2);
  const [stuck, other] = all as [Election, Election];
  const stop = new AbortController();
  const running = stuck.run(() => new Promise<void>(() => {}), { signal: stop.signal });
  const otherTerm = await other.campaign();
  await clock.advance(0);
  const { term } = stuck;
  stop.abort();
  await clock.advance(5_000); // drainMs
  backend.extend();
  expect(term?.remainingMs).toBe(TTL_MS - MARGIN_MS - 5_000);
  await clock.advance(TTL_MS - MARGIN_MS - 5_000);
  expect(term?.end).toMatchObject({ reason: "resigned", drained: false });
  expect(backend.released).toEqual([term?.token]);
  expect(otherTerm.held).toBe(true);
  await running;
});

test("a new term after the old ones ran out counts from the session as it is then", async () => {
  const { clock, backend, all } = elections(1);
  await lead(all);
  await clock.advance(TTL_MS);
  backend.extend();
  const [again] = await lead(all);
  expect(again?.remainingMs).toBe(TTL_MS - MARGIN_MS);
  expect(backend.followers.size).toBe(1);
});

test("failed attempts are told to each term once, and that it is safe again", async () => {
  const { backend, all } = elections(2);
  await lead(all);
  const told: string[] = [];
  for (const election of all) {
    election.on("jeopardy", ({ term }) => told.push(`jeopardy ${term.election}`));
    election.on("safe", ({ term }) => told.push(`safe ${term.election}`));
  }
  backend.fail(new Error("no answer"));
  backend.fail(new Error("no answer"));
  backend.extend();
  await Promise.resolve();
  await Promise.resolve();
  expect(told.toSorted()).toEqual(["jeopardy e0", "jeopardy e1", "safe e0", "safe e1"]);
});

test("a term whose deadline passed unnoticed during a pause and is then resigned has expired", async () => {
  const { clock, backend, all } = elections(1);
  const [term] = await lead(all);
  clock.stall(TTL_MS);
  await term?.resign();
  expect(term?.end?.reason).toBe("expired");
  expect(backend.released).toEqual([]);
});

test("a term that begins after the last one on its session was given up is kept like the first", async () => {
  const { clock, backend, all } = elections(1);
  const [first] = await lead(all);
  await first?.resign();
  expect([backend.followers.size, clock.timers]).toEqual([0, 0]);
  const [second] = await lead(all);
  expect([backend.followers.size, clock.timers]).toEqual([1, 1]);
  await clock.advance(5_000);
  backend.extend();
  expect(second?.remainingMs).toBe(TTL_MS - MARGIN_MS);
  await clock.advance(TTL_MS);
  expect(second?.end?.reason).toBe("expired");
});
