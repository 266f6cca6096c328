/** Every way in which a term ends, and every field that tells of it: to its owner, to its work and to listeners. */
import { describe, expect, test } from "vitest";
import { Election, isConclaveError, Lock, NotLeaderError } from "../../src/index.js";
import type { Term, TermEnd } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { PLAIN, ScriptedBackend } from "../election/interleave/scripted-backend.js";

const TTL_MS = 3_000;
const MARGIN_MS = 450;
const DRAIN_MS = 1_000;
const AT_MS = 500;

interface Leadership {
  readonly clock: VirtualClock;
  readonly backend: ScriptedBackend;
  readonly election: Election;
  readonly term: Term;
  /** Work of `run()`: settles as told here. */
  readonly work: { readonly settle: () => void; readonly fail: (error: Error) => void };
  readonly stop: AbortController;
}

interface Way {
  readonly name: string;
  readonly by: "campaign" | "run";
  readonly maxTermMs?: number;
  /** Whether the work stops when it is told to. */
  readonly obeys?: boolean;
  /** Ends the term, after {@link AT_MS} of it. */
  readonly act: (leadership: Leadership) => unknown;
  readonly end: TermEnd;
  /** How long the term lasts, at least and at most. */
  readonly lasts: readonly [number, number];
  readonly releases: number;
}

const GONE = "the store says that the lease is gone";
const NOT_OURS = "the store says that the lease is gone or held by someone else";
const LATE = "the deadline passed without a renewal";
const ON_TIME = [AT_MS, AT_MS] as const;

/** Given up at AT_MS, renewed until the drain ran out, and over at the deadline of the last renewal. */
const LAPSED = [AT_MS + DRAIN_MS, AT_MS + DRAIN_MS + TTL_MS - MARGIN_MS] as const;

const WAYS: readonly Way[] = [
  {
    name: "its owner resigns",
    by: "campaign",
    act: ({ term }) => term.resign(),
    end: { reason: "resigned", detail: "resign() was called", drained: true },
    lasts: ON_TIME,
    releases: 1,
  },
  {
    name: "the election resigns",
    by: "campaign",
    act: ({ election }) => election.resign(),
    end: { reason: "resigned", detail: "resign() was called", drained: true },
    lasts: ON_TIME,
    releases: 1,
  },
  {
    name: "the election resigns while work runs",
    by: "run",
    act: ({ election }) => election.resign(),
    end: { reason: "resigned", detail: "resign() was called", drained: true },
    lasts: ON_TIME,
    releases: 1,
  },
  {
    name: "the election resigns, and the work does not stop",
    by: "run",
    obeys: false,
    act: ({ election }) => election.resign(),
    end: { reason: "resigned", detail: "resign() was called", drained: false },
    lasts: LAPSED,
    releases: 1,
  },
  {
    name: "the election is closed",
    by: "campaign",
    act: ({ election }) => election.close(),
    end: { reason: "closed", detail: "the election was closed", drained: true },
    lasts: ON_TIME,
    releases: 1,
  },
  {
    name: "the election is closed, and the work does not stop",
    by: "run",
    obeys: false,
    act: ({ election }) => election.close(),
    end: { reason: "closed", detail: "the election was closed", drained: false },
    lasts: LAPSED,
    releases: 1,
  },
  {
    name: "the work returns",
    by: "run",
    act: ({ work }) => work.settle(),
    end: { reason: "resigned", detail: "the work returned", drained: true },
    lasts: ON_TIME,
    releases: 1,
  },
  {
    name: "the work fails",
    by: "run",
    act: ({ work }) => work.fail(new Error("no ink")),
    end: { reason: "resigned", detail: "the work failed", drained: true },
    lasts: ON_TIME,
    releases: 1,
  },
  {
    name: "the caller's signal aborts",
    by: "run",
    act: ({ stop }) => stop.abort(),
    end: { reason: "resigned", detail: "the candidate was stopped", drained: true },
    lasts: ON_TIME,
    releases: 1,
  },
  {
    name: "it reaches its limit, while work runs",
    by: "run",
    maxTermMs: AT_MS,
    act: () => {},
    end: { reason: "resigned", detail: "the term reached its limit (maxTermMs)", drained: true },
    lasts: ON_TIME,
    releases: 1,
  },
  {
    name: "it reaches its limit, and its owner does not resign",
    by: "campaign",
    maxTermMs: AT_MS,
    act: () => {},
    end: { reason: "resigned", detail: "the term reached its limit (maxTermMs)", drained: false },
    lasts: LAPSED,
    releases: 1,
  },
  {
    name: "the store is silent",
    by: "campaign",
    act: ({ backend }) => (backend.hangs = true),
    end: { reason: "expired", detail: LATE, drained: false },
    lasts: [TTL_MS - MARGIN_MS, TTL_MS - MARGIN_MS],
    releases: 0,
  },
  {
    name: "the process was away past its deadline, and its owner resigns then",
    by: "campaign",
    act: async ({ clock, term }) => {
      clock.stall(TTL_MS);
      await term.resign();
    },
    end: { reason: "expired", detail: LATE, drained: false },
    lasts: [AT_MS + TTL_MS, AT_MS + TTL_MS],
    releases: 0,
  },
  {
    name: "the store says at once that the lease is gone",
    by: "campaign",
    act: ({ backend }) => backend.holds[0]?.revoke(),
    end: { reason: "revoked", detail: GONE, drained: false },
    lasts: ON_TIME,
    releases: 0,
  },
  {
    name: "the store says at a renewal that the lease is gone",
    by: "run",
    act: ({ backend }) => (backend.holds[0]!.lost = true),
    end: { reason: "revoked", detail: NOT_OURS, drained: false },
    lasts: [0.9 * (TTL_MS / 3), TTL_MS / 3],
    releases: 0,
  },
];

async function open(way: Way): Promise<Leadership & { readonly ended: { term: Term; end: TermEnd }[] }> {
  const clock = new VirtualClock();
  const backend = new ScriptedBackend(clock, PLAIN);
  const { maxTermMs } = way;
  const election = new Election({
    name: "ends",
    id: "me",
    value: "mine",
    backend,
    clock,
    ttlMs: TTL_MS,
    drainMs: DRAIN_MS,
    maxTermMs,
  });
  const ended: { term: Term; end: TermEnd }[] = [];
  election.on("ended", ({ term, end }) => ended.push({ term, end }));
  const terms: Term[] = [];
  election.on("elected", ({ term }) => terms.push(term));
  const stop = new AbortController();
  let settle = (): void => {};
  let fail: (error: Error) => void = settle;
  if (way.by === "campaign") void election.campaign().catch(() => {});
  else
    void election.run(
      (term) =>
        new Promise<void>((resolve, reject) => {
          [settle, fail] = [resolve, reject];
          if (way.obeys !== false) term.signal.addEventListener("abort", () => resolve());
        }),
      { signal: stop.signal },
    );
  await clock.advance(0);
  const [term] = terms;
  if (term === undefined) throw new Error("nobody was elected");
  return {
    clock,
    backend,
    election,
    term,
    ended,
    stop,
    work: { settle: () => settle(), fail: (e) => fail(e) },
  };
}

function checkBefore({ clock, term, election }: Leadership): void {
  expect(term).toMatchObject({ election: "ends", candidate: election.candidate, token: 1n, value: "mine" });
  expect(term).toMatchObject({ since: clock.wall(), held: true, end: undefined, lastedMs: 0 });
  expect(term.remainingMs).toBe(TTL_MS - MARGIN_MS);
  expect(term.signal.aborted).toBe(false);
  expect(term.candidate).toMatch(/^me-/);
  term.assertHeld();
}

function checkAfter({ term }: Leadership, { end, lasts }: Way): void {
  expect(term.end).toEqual(end);
  expect([term.held, term.remainingMs]).toEqual([false, 0]);
  expect(term.lastedMs).toBeGreaterThanOrEqual(lasts[0]);
  expect(term.lastedMs).toBeLessThanOrEqual(lasts[1]);
  const { reason } = term.signal;
  expect(reason).toBeInstanceOf(NotLeaderError);
  expect(reason).toMatchObject({ code: "not-leader", token: 1n, retriable: false });
  expect(String(reason)).toContain(`term 1 of election "ends" is over: ${end.detail}`);
  const because = `term 1 of election "ends" is over: ${end.detail}; stop its work`;
  expect(() => term.assertHeld()).toThrow(because);
}

describe.each(WAYS)("$name", (way) => {
  test("the end is the same for all who are told, and is told once", async () => {
    const leadership = await open(way);
    const { clock, backend, term, ended, election, work } = leadership;
    checkBefore(leadership);
    let awaited: TermEnd | undefined;
    const calls: string[] = [];
    void term.ended.then((end) => (awaited = end));
    await clock.advance(AT_MS);
    void way.act(leadership);
    await clock.advance(way.lasts[1] - way.lasts[0] === 0 ? 0 : DRAIN_MS - 1);
    if (way.lasts === LAPSED) {
      // The work was told, and may still act: held, and not given back.
      expect([term.signal.aborted, term.held, backend.holds[0]?.released]).toEqual([true, true, false]);
      expect(term.end).toBeUndefined();
      expect(ended).toEqual([]);
      await clock.advance(1);
      // From here on nothing keeps its lease any more.
      backend.onCall = (what) => calls.push(what);
    }
    await clock.advance(2 * TTL_MS);
    checkAfter(leadership, way);
    expect(calls.slice(0, 1)).toEqual(way.lasts === LAPSED ? ["release"] : []);
    expect(awaited).toBe(term.end);
    expect(await term.ended).toBe(term.end);
    expect(ended[0]).toEqual({ term, end: way.end });
    expect(ended.filter((event) => event.term === term)).toHaveLength(1);
    expect(backend.holds[0]?.released).toBe(way.releases === 1);
    const { lastedMs } = term;
    await clock.advance(TTL_MS);
    expect(term.lastedMs, "it does not go on counting").toBe(lastedMs);
    backend.hangs = false;
    work.settle();
    leadership.stop.abort();
    const closing = election.close();
    await clock.advance(2 * TTL_MS);
    await closing;
    expect(clock.timers).toBe(0);
  });
});

test("the end is told when the lease is released, not before; what cannot be released is an error", async () => {
  const leadership = await open({ ...WAYS[0]!, by: "campaign" });
  const { backend, term, election, clock, ended } = leadership;
  const errors: unknown[] = [];
  election.on("error", ({ error }) => errors.push(error));
  backend.hangs = true;
  void term.resign();
  let told = false;
  void term.ended.then(() => (told = true));
  await clock.advance(0);
  expect(term.end).toEqual({ reason: "resigned", detail: "resign() was called", drained: true });
  expect([term.held, told, ended.length, errors.length]).toEqual([false, false, 0, 0]);
  await clock.advance(2 * TTL_MS);
  expect([told, ended.length, errors.length]).toEqual([true, 1, 1]);
  expect(errors[0]).toMatchObject({ code: "timeout" });
  await election.close();
});

test("a lock that is lost while its work runs says so, with token and reason", async () => {
  const clock = new VirtualClock();
  const backend = new ScriptedBackend(clock, PLAIN);
  const lock = new Lock({ name: "door", backend, clock, ttlMs: TTL_MS });
  const outcome = lock
    .withLock(async (term) => {
      backend.holds[0]?.revoke();
      await term.ended;
      return "done";
    })
    .catch((error: unknown) => error);
  await clock.advance(0);
  const error = await outcome;
  expect(isConclaveError(error) && error.code).toBe("not-leader");
  expect(error).toMatchObject({ token: 1n });
  expect(String(error)).toContain(`lock "door" was lost before the work under it was done (${GONE})`);
  await lock.close();
});
