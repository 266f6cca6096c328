/** Preferred candidates: at a vacancy, and after the time that a sitting leader has. On a virtual clock. */
import { beforeEach, describe, expect, it } from "vitest";
import { decodeRoster } from "../../src/control/roster.js";
import { Election, memoryBackend } from "../../src/index.js";
import type { BackendWithRecords, ElectionOptions, Term } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";

const TTL_MS = 3_000;

let clock: VirtualClock;
let backend: BackendWithRecords;
/** Who led, in their order: id and when. */
let led: { readonly id: string; readonly at: number }[];
let opened: Election[];

beforeEach(() => {
  clock = new VirtualClock();
  backend = memoryBackend({ clock });
  led = [];
  opened = [];
});

function open(id: string, over: Partial<ElectionOptions> = {}): Election {
  const election = new Election({ name: "e", backend, id, ttlMs: TTL_MS, retryMs: 600, clock, ...over });
  election.on("elected", () => led.push({ id, at: clock.now() }));
  opened.push(election);
  return election;
}

const work = (term: Term): Promise<void> =>
  new Promise((resolve) => term.signal.addEventListener("abort", () => resolve()));

async function close(elections = opened): Promise<void> {
  const closing = Promise.all(elections.map((election) => election.close()));
  await clock.advance(10_000);
  await closing;
}

const ids = (): string[] => led.map(({ id }) => id);

describe("priority at a vacancy", () => {
  it("makes the preferred candidate lead, in 100 of 100, whoever saw it first", async () => {
    for (let round = 0; round < 100; round++) {
      led = [];
      opened = [];
      const priorities = { a: 0, b: 1, c: 5, d: 2 };
      const holder = open("z", { priority: 9 });
      void holder.run(work);
      await clock.advance(10);
      const others = Object.entries(priorities).map(([id, priority]) => open(id, { priority }));
      for (const election of round % 2 ? others : others.toReversed()) void election.run(work);
      await clock.advance(TTL_MS);
      await close([holder]);
      expect(ids().slice(0, 2)).toEqual(["z", "c"]);
      await close(others);
    }
  });

  it("does not make a lonely candidate wait, nor one of the highest class", async () => {
    for (const priority of [-5, 5]) {
      const election = open("a", { priority });
      const asked = clock.now();
      void election.run(work);
      await clock.advance(1_000);
      expect(led.at(-1)?.at).toBe(asked);
      await close([election]);
    }
  });

  it("does not keep a lower class out when the preferred one is gone without a word", async () => {
    const low = open("low", { priority: 0 });
    await backend.records.write(
      "roster.e",
      null,
      JSON.stringify({
        v: 1,
        members: { "high-1": { beat: 1, ttlMs: TTL_MS, priority: 9, eligible: true, since: 0 } },
      }),
      { signal: new AbortController().signal },
    );
    void low.run(work);
    await clock.advance(1_000);
    expect(ids()).toEqual(["low"]);
    await close();
  });
});

describe("a sitting leader of a lower priority", () => {
  it("hands over after its time, to the highest that has been there for long enough", async () => {
    const low = open("low", { priority: 0, minTermMs: 20_000 });
    void low.run(work);
    await clock.advance(100);
    const [mid, high] = [open("mid", { priority: 1 }), open("high", { priority: 2 })];
    for (const election of [mid, high]) void election.run(work);
    await clock.advance(19_800);
    expect(ids()).toEqual(["low"]);
    await clock.advance(3_000);
    expect(ids()).toEqual(["low", "high"]);
    await close();
  });

  it("does not hand over to an equal, to one that may not lead, nor to one that has just come", async () => {
    const low = open("low", { priority: 1, minTermMs: 0 });
    void low.run(work);
    await clock.advance(100);
    const [equal, witness] = [
      open("equal", { priority: 1 }),
      open("witness", { priority: 9, eligible: false }),
    ];
    for (const election of [equal, witness]) void election.run(work);
    await clock.advance(60_000);
    const high = open("high", { priority: 2 });
    void high.run(work);
    await clock.advance(2 * TTL_MS - 100);
    expect(ids()).toEqual(["low"]);
    await clock.advance(2 * TTL_MS);
    expect(ids()).toEqual(["low", "high"]);
    await close();
  });

  it("keeps its time although a preferred candidate comes and goes all the while", async () => {
    const minTermMs = 30_000;
    const low = open("low", { priority: 0, minTermMs });
    void low.run(work);
    await clock.advance(100);
    for (let round = 0; round < 20; round++) {
      const high = open("high", { priority: 9, minTermMs });
      void high.run(work);
      await clock.advance(4_000);
      const closing = high.close();
      await clock.advance(1_000);
      await closing;
    }
    // 100 s: less than two ttls at a time is never stable.
    expect(ids()).toEqual(["low"]);
    await close();
  });
});

describe("an election with a roster", () => {
  it("says who stands, highest first, and leaves out who has gone", async () => {
    const a = open("a", { roster: true });
    const b = open("b", { priority: 3 });
    const w = open("w", { eligible: false });
    void a.run(work);
    await clock.advance(10);
    for (const election of [b, w]) void election.run(work);
    await clock.advance(TTL_MS);
    const seen = async (by: Election) => {
      const asked = by.candidates();
      await clock.advance(0);
      return (await asked).map(({ candidate, priority, eligible, leads, self }) => [
        candidate.slice(0, 1),
        priority,
        eligible,
        leads,
        self,
      ]);
    };
    expect(await seen(a)).toEqual([
      ["b", 3, true, false, false],
      ["a", 0, true, true, true],
      ["w", 0, false, false, false],
    ]);
    expect((await seen(open("outsider"))).length).toBe(3);
    await close([w]);
    expect((await seen(a)).map(([id]) => id)).toEqual(["b", "a"]);
    await close();
  });

  it("refuses a transfer to nobody", async () => {
    const a = open("a", { roster: true });
    const term = a.campaign();
    await clock.advance(10);
    const b = open("b", { roster: true });
    void b.run(work);
    await clock.advance(TTL_MS);
    await expect((await term).transfer("c")).rejects.toThrow(/no candidate "c" stands .* b-/);
    const result = a.transfer("b");
    await clock.advance(100);
    expect(await result).toBe("taken");
    await close();
  });

  it("writes nothing where it is not asked for, and leaves nothing behind", async () => {
    const plain = open("plain");
    void plain.run(work);
    await clock.advance(TTL_MS);
    const { signal } = new AbortController();
    expect(await backend.records.read("roster.e", { signal })).toBeNull();
    await close();
    const member = open("member", { roster: true });
    void member.run(work);
    await clock.advance(TTL_MS);
    expect(decodeRoster((await backend.records.read("roster.e", { signal }))?.record).size).toBe(1);
    await close([member]);
    expect(decodeRoster((await backend.records.read("roster.e", { signal }))?.record).size).toBe(0);
    expect(clock.timers).toBe(0);
  });

  it.each([{ priority: 1.5 }, { priority: "5" }, { priority: 2e6 }, { eligible: "no" }, { minTermMs: -1 }])(
    "refuses %j",
    (over) => {
      expect(() => open("a", { roster: true, ...(over as Partial<ElectionOptions>) })).toThrow(
        expect.objectContaining({ code: "invalid" }),
      );
    },
  );
});

describe("a roster's text", () => {
  const line = { beat: 1, ttlMs: 3_000, priority: 0, eligible: true, since: 0 };

  it.each([
    "",
    "no",
    "[]",
    "7",
    JSON.stringify({ v: 2, members: { "a-1": line } }),
    JSON.stringify({ v: 1, members: { "a-1": { ...line, priority: 1e9 } } }),
    JSON.stringify({ v: 1, members: { "a-1": { ...line, beat: "1" } } }),
    JSON.stringify({ v: 1, members: { "a-1": { ...line, ttlMs: -1 } } }),
    JSON.stringify({ v: 1, members: { "a\n1": line } }),
    JSON.stringify({ v: 1, members: { "a-1": line }, pad: "x".repeat(70_000) }),
  ])("that cannot be meant names nobody: %j", (text) => {
    expect(decodeRoster(text).size).toBe(0);
  });

  it("bounds how long a line counts", () => {
    const text = JSON.stringify({ v: 1, members: { "a-1": { ...line, ttlMs: 1e12 } } });
    expect(decodeRoster(text).get("a-1")?.ttlMs).toBe(60_000);
  });
});
