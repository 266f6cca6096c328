/** One term's work inside run(), on a virtual clock: when it begins, what counts as failed, what outlives its term. */
import { describe, expect, it } from "vitest";
import { NotLeaderError, StaleLeaderError } from "../../src/kit/errors.js";
import type { Work } from "../../src/election/work.js";
import { DRAIN_MS, MARGIN_MS, openScene, outcome, silence, TTL_MS } from "../support/hand-backend.js";
import type { Scene } from "../support/hand-backend.js";

interface Running extends Scene {
  readonly running: { settled: boolean };
  readonly errors: unknown[];
  readonly stop: AbortController;
}

function start(work: Work, options = {}): Running {
  const scene = openScene(options);
  const errors: unknown[] = [];
  scene.election.on("error", ({ error }) => errors.push(error));
  const stop = new AbortController();
  const running = outcome(scene.election.run(work, { signal: stop.signal }));
  return { ...scene, running, errors, stop };
}

async function close({ clock, election }: Scene): Promise<void> {
  const closing = election.close();
  await clock.advance(DRAIN_MS + TTL_MS);
  await closing;
  expect(clock.timers).toBe(0);
}

describe("work that is told to stop", () => {
  it.each([
    ["its signal's reason", (reason: unknown) => reason],
    ["an AbortError", () => new DOMException("aborted", "AbortError")],
    ["that it does not lead", () => new NotLeaderError(1n, "over")],
    ["that a newer leader has come", () => new StaleLeaderError(1n, 2n)],
  ])("has not failed if it throws %s", async (_, thrown) => {
    const here = start(async (term) => {
      await new Promise<void>((resolve) =>
        term.signal.addEventListener("abort", () => resolve(), { once: true }),
      );
      throw thrown(term.signal.reason);
    });
    await here.clock.advance(1);
    here.stop.abort();
    await here.clock.advance(1);
    expect([here.running.settled, here.errors]).toEqual([true, []]);
    await close(here);
  });

  it.each([
    ["an AbortError", () => new DOMException("aborted", "AbortError")],
    ["that a newer leader has come", () => new StaleLeaderError(1n, 2n)],
  ])("has failed if it throws %s before it was told", async (_, thrown) => {
    const here = start(() => Promise.reject(thrown()));
    await here.clock.advance(1);
    expect(here.errors).toHaveLength(1);
    await close(here);
  });
});

describe("work that outlives its term", () => {
  it("is reported after drainMs when the term was lost, and no new term begins before it has settled", async () => {
    let finish = (): void => {};
    const here = start(() => new Promise<void>((resolve) => (finish = resolve)));
    here.backend.onRenew = silence;
    await here.clock.advance(TTL_MS - MARGIN_MS + DRAIN_MS - 1);
    expect(here.errors).toEqual([]);
    await here.clock.advance(1);
    expect(here.errors).toMatchObject([
      { code: "state", message: expect.stringMatching("term 1 is still running") },
    ]);
    await here.clock.advance(10 * TTL_MS);
    expect(here.backend.count("campaign")).toBe(1);
    here.backend.onRenew = () => {};
    finish();
    await here.clock.advance(TTL_MS);
    expect(here.backend.count("campaign")).toBe(2);
    finish();
    await close(here);
  });

  it("gets no more time if it had drainMs already and did not stop", async () => {
    const here = start(silence);
    await here.clock.advance(1);
    here.stop.abort();
    await here.clock.advance(DRAIN_MS + TTL_MS);
    expect(here.running.settled).toBe(true);
    expect(here.errors).toMatchObject([{ code: "state" }]);
    await close(here);
  });

  it("is not reported if it settles within drainMs of the loss", async () => {
    let finish = (): void => {};
    const here = start(() => new Promise<void>((resolve) => (finish = resolve)));
    here.backend.onRenew = silence;
    await here.clock.advance(TTL_MS - MARGIN_MS + DRAIN_MS - 1);
    finish();
    await here.clock.advance(1);
    expect(here.errors).toEqual([]);
    here.backend.onRenew = () => {};
    await close(here);
  });
});
