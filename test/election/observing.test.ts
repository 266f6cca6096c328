/** Following who leads, on a virtual clock: what is news, what a store that goes back looks like, what is waited out. */
import { describe, expect, it } from "vitest";
import type { Leader } from "../../src/seam/backend.js";
import { Backoff } from "../../src/kit/backoff.js";
import { observeLeaders } from "../../src/election/observe.js";
import { SetClock } from "../support/set-clock.js";
import { openScene, outcome, silence } from "../support/hand-backend.js";

const leader = (token: bigint, value = "v"): Leader => ({ candidate: `c${token}`, token, value });

/** Shows these, one stream after the other; an Error ends its stream. */
async function shown(
  ...streams: (Leader | null | Error)[][]
): Promise<{ seen: unknown[]; floor: bigint[]; errors: unknown[] }> {
  const clock = new SetClock();
  const stop = new AbortController();
  const result = { seen: [] as unknown[], floor: [] as bigint[], errors: [] as unknown[] };
  async function* follow(): AsyncGenerator<Leader | null, void, undefined> {
    const stream = streams.shift();
    if (stream === undefined) return stop.abort();
    for (const each of stream) {
      if (each instanceof Error) throw each;
      yield each;
    }
  }
  const following = (async () => {
    for await (const each of observeLeaders({
      follow,
      clock,
      backoff: new Backoff(clock, 1, 1),
      signal: stop.signal,
      seen: (token) => result.floor.push(token),
      failed: (error) => result.errors.push((error as { code?: string }).code ?? (error as Error).message),
    }))
      result.seen.push(each === null ? null : `${each.token} ${each.value}`);
  })();
  await clock.advance(100);
  await following;
  return result;
}

describe("what is news", () => {
  it("is another token, another value, the end of a term: each once", async () => {
    const { seen, floor, errors } = await shown([
      null,
      null,
      leader(1n),
      leader(1n),
      leader(1n, "w"),
      leader(2n, "w"),
      null,
      null,
      leader(3n),
    ]);
    expect(seen).toEqual([null, "1 v", "1 w", "2 w", null, "3 v"]);
    expect([floor, errors]).toEqual([[1n, 1n, 2n, 3n], []]);
  });

  it("is kept over streams that end or fail, which are followed anew", async () => {
    const { seen, errors } = await shown(
      [leader(1n)],
      [new Error("away")],
      [leader(1n), leader(2n)],
      [leader(2n)],
    );
    expect([seen, errors]).toEqual([["1 v", "2 v"], ["away"]]);
  });

  it("is not a term that has ended, shown again", async () => {
    const { seen } = await shown([
      leader(2n),
      null,
      leader(2n),
      leader(2n, "w"),
      leader(3n),
      null,
      leader(3n),
    ]);
    expect(seen).toEqual(["2 v", null, "3 v", null]);
  });

  it("is a store that goes back, after an error that says so; then that is the order", async () => {
    const { seen, errors, floor } = await shown([leader(5n), leader(2n), leader(2n), leader(3n), leader(5n)]);
    expect(seen).toEqual(["5 v", "2 v", "3 v", "5 v"]);
    expect([errors, floor]).toEqual([["token-regression"], [5n, 2n, 3n, 5n]]);
  });

  it("is a store that goes back to a term that had ended, too", async () => {
    const { seen, errors } = await shown([leader(5n), null, leader(2n), null, leader(5n), leader(3n)]);
    expect(seen).toEqual(["5 v", null, "2 v", null, "5 v", "3 v"]);
    expect(errors).toEqual(["token-regression", "token-regression"]);
  });
});

describe("an election's observers", () => {
  it("pause between streams that fail, ever longer, and end with their signal or with close()", async () => {
    const { clock, backend, election } = openScene();
    clock.draw = 1;
    backend.leaders = () => {
      throw new Error("away");
    };
    const stop = new AbortController();
    const follow = async (signal?: AbortSignal): Promise<string> => {
      for await (const _ of election.observe(signal === undefined ? {} : { signal }));
      return "ended";
    };
    const [first, second] = [outcome(follow(stop.signal)), outcome(follow())];
    await clock.advance(249);
    expect(backend.count("observe")).toBe(2);
    await clock.advance(1);
    expect(backend.count("observe")).toBe(4);
    stop.abort();
    await clock.advance(500);
    expect([first.value, second.settled, backend.count("observe")]).toEqual(["ended", false, 5]);
    await election.close();
    await clock.advance(0);
    expect([second.value, clock.timers]).toEqual(["ended", 0]);
  });

  it("are told by leader events while someone listens, and the store is left alone otherwise", async () => {
    const { clock, backend, election } = openScene();
    let streams = 0;
    let stopped = 0;
    backend.leaders = async function* ({ signal }) {
      streams++;
      yield leader(7n);
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      stopped++;
    };
    const told: unknown[] = [];
    const [offA, offB] = [1, 2].map((n) =>
      election.on("leader", (event) => told.push([n, event.leader?.token])),
    );
    await clock.advance(0);
    expect([told, streams]).toEqual([
      [
        [1, 7n],
        [2, 7n],
      ],
      1,
    ]);
    offA!();
    await clock.advance(0);
    expect(stopped).toBe(0);
    offB!();
    await clock.advance(0);
    expect(stopped).toBe(1);
    election.on("leader", (event) => told.push([3, event.leader?.token]));
    await clock.advance(0);
    expect([told.at(-1), streams]).toEqual([[3, 7n], 2]);
    await election.close();
    election.on("leader", () => {});
    await clock.advance(0);
    expect(streams).toBe(2);
  });
});

describe("leader()", () => {
  it("is the first answer of the store, and lets go of it", async () => {
    const { backend, election } = openScene();
    let ended = 0;
    backend.leaders = async function* () {
      try {
        yield leader(7n);
        yield leader(8n);
      } finally {
        ended++;
      }
    };
    expect(await election.leader()).toMatchObject({ token: 7n });
    expect(ended).toBe(1);
    backend.leaders = async function* () {
      yield null;
    };
    expect(await election.leader()).toBeNull();
    await election.close();
  });

  it("rejects if the store does not say, is not there, or takes longer than two attempts", async () => {
    const { clock, backend, election } = openScene();
    backend.leaders = async function* () {};
    await expect(election.leader()).rejects.toMatchObject({ code: "unavailable" });
    backend.leaders = () => {
      throw new Error("away");
    };
    await expect(election.leader()).rejects.toThrow("away");
    backend.leaders = async function* () {
      await silence();
      yield null;
    };
    const hanging = outcome(election.leader());
    await clock.advance(4_999);
    expect(hanging.settled).toBe(false);
    await clock.advance(1);
    expect(hanging.error).toMatchObject({
      code: "timeout",
      message: expect.stringMatching("^asking who leads"),
    });
    const given = outcome(election.leader({ signal: AbortSignal.abort(new Error("given up")) }));
    await clock.advance(0);
    expect(given.error).toMatchObject({ message: "given up" });
    await election.close();
    expect(clock.timers).toBe(0);
  });

  it("counts as seen: a lower token does not lead afterwards", async () => {
    const { backend, election } = openScene();
    backend.leaders = async function* () {
      yield leader(7n);
    };
    await election.leader();
    await expect(election.campaign()).rejects.toMatchObject({ code: "token-regression" });
    election.acceptRegression();
    expect((await election.campaign()).token).toBe(2n);
    await election.close();
  });
});
