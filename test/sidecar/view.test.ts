/** What a sidecar may say of an election, and for how long: on a virtual clock. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Leader, ObserveOptions } from "../../src/seam/backend.js";
import { ElectionView } from "../../src/sidecar/view.js";
import { MARGIN_MS, openScene, silence, TTL_MS } from "../support/hand-backend.js";
import type { Scene } from "../support/hand-backend.js";

const OTHER: Leader = { candidate: "other-1", token: 5n, value: "v", since: 1 };

let scene: Scene;
let view: ElectionView;
/** Who leads, as the store says when it is asked; called once for each question. */
let answer: () => Leader | null | Promise<Leader | null>;

beforeEach(() => {
  scene = openScene();
  scene.backend.token = OTHER.token; // the next term is ours
  answer = () => OTHER;
  scene.backend.leaders = async function* ({ signal }: ObserveOptions) {
    const stopped = new Promise<undefined>((resolve) =>
      signal.addEventListener("abort", () => resolve(undefined), { once: true }),
    );
    const leader = await Promise.race([answer(), stopped]);
    if (leader === undefined) return;
    yield leader;
    await stopped;
  };
});

afterEach(async () => {
  answer = () => OTHER;
  await Promise.all([view.close(), scene.election.close()]);
  expect(scene.clock.timers).toBe(0);
});

async function open(): Promise<ElectionView> {
  view = new ElectionView(scene.election, scene.clock);
  await new Promise((resolve) => setImmediate(resolve));
  return view;
}

it("is valid for a ttl from the question, not from the answer", async () => {
  answer = () => {
    scene.clock.stall(1_000); // on its way; both the follower and the question take that long
    return OTHER;
  };
  const state = (await open()).state();
  expect(state).toMatchObject({ leading: false, leader: { candidate: "other-1" } });
  expect(state!.validForMs).toBe(TTL_MS - 1_000);
});

it("is not known before the store has answered, and not any more a ttl after it was last asked", async () => {
  answer = silence;
  const { clock } = scene;
  await open();
  expect([view.state(), view.informed]).toEqual([null, false]);
  await view.close();
  answer = () => OTHER;
  await open();
  expect(view.state()?.validForMs).toBe(TTL_MS);
  answer = silence;
  await clock.advance(TTL_MS / 3 - 1); // the next question is not answered
  expect(view.state()?.validForMs).toBeLessThan(TTL_MS);
  await clock.advance((2 * TTL_MS) / 3);
  expect(view.state()?.validForMs).toBe(1);
  await clock.advance(1);
  expect([view.state(), view.informed]).toEqual([null, false]);
});

it("is asked for again and again, so that nothing new is news too", async () => {
  const { clock } = scene;
  await open();
  for (let i = 0; i < 10; i++) {
    await clock.advance(TTL_MS / 2);
    expect(view.state()?.validForMs).toBeGreaterThan(TTL_MS / 2);
  }
});

it("of our own term is what the term says, whatever the store says", async () => {
  const { clock, election } = scene;
  await open();
  const term = await election.campaign();
  await clock.advance(1.5);
  expect(view.state()).toMatchObject({
    leading: true,
    jeopardy: false,
    leader: { candidate: election.candidate, token: "6" },
    validForMs: Math.floor(TTL_MS - MARGIN_MS - 1.5),
  });
  await term.resign();
  expect(view.state()).toMatchObject({ leading: false, leader: { candidate: "other-1" } });
});

it("is nobody, not us, while the store still names us after our own deadline", async () => {
  const { backend, clock, election } = scene;
  await open();
  const term = await election.campaign();
  answer = () => ({ ...OTHER, candidate: election.candidate, token: 6n });
  backend.onRenew = silence;
  await clock.advance(TTL_MS - MARGIN_MS);
  expect(term.held).toBe(false);
  await clock.advance(TTL_MS / 3);
  expect(view.state()).toMatchObject({ leading: false, jeopardy: false, leader: null });
});

it("is endangered while renewals fail, and only while it leads", async () => {
  const { backend, clock, election } = scene;
  await open();
  const told: (boolean | undefined)[] = [];
  const off = view.onChange(() => told.push(view.state()?.jeopardy));
  await election.campaign();
  backend.onRenew = () => {
    throw new Error("away");
  };
  await clock.advance(TTL_MS / 3);
  expect([view.endangered, view.state()?.jeopardy]).toEqual([true, true]);
  backend.onRenew = () => {};
  await clock.advance(TTL_MS / 3);
  expect([view.endangered, view.state()?.jeopardy]).toEqual([false, false]);
  backend.onRenew = silence;
  await clock.advance(TTL_MS);
  expect([view.endangered, election.leading]).toEqual([false, false]);
  expect(told.slice(0, 3)).toEqual([false, true, false]); // elected, jeopardy, safe
  off();
  const before = told.length;
  await election.campaign();
  await clock.advance(0);
  expect(told).toHaveLength(before);
});

it("is told when another leads, or the same one with another value, and not otherwise", async () => {
  const { clock } = scene;
  await open();
  let told = 0;
  view.onChange(() => void told++);
  await clock.advance(2 * TTL_MS);
  expect(told).toBe(0);
  answer = () => ({ ...OTHER, value: "w" });
  await clock.advance(TTL_MS / 2);
  expect(told).toBe(1);
  answer = () => null;
  await clock.advance(TTL_MS / 2);
  expect(told).toBe(2);
  expect(view.state()?.leader).toBeNull();
});
