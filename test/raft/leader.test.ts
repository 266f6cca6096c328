/** The leader's side of a term, with voters in memory: to whom it tells its value, and what counts once it has given up. */
import { beforeEach, expect, it } from "vitest";
import { Leader } from "../../src/backends/raft/leader.js";
import type { ElectionRequest } from "../../src/backends/raft/messages.js";
import { Voter } from "../../src/backends/raft/voter.js";
import type { Voters } from "../../src/backends/raft/voters.js";
import { deferred } from "../../src/kit/wait.js";
import { SetClock } from "../support/set-clock.js";

const LEASE_MS = 1_000;
const NAMES = ["n1", "n2", "n3"];
const bid = { id: "bid", candidate: "a" };

let clock: SetClock;
let nodes: Map<string, Voter>;
/** What a voter has answered travels for as long as this. */
let travels: (request: ElectionRequest) => Promise<void>;
let leader: Leader;

const at = (): { now: number; wall: number } => ({ now: clock.now(), wall: clock.wall() });

/** A process that ends and begins anew: it knows what was on disk, and nothing else. */
function restart(name: string): void {
  const records = nodes.get(name)!.records();
  nodes.set(name, new Voter({ records, floor: 0n, startedAt: clock.now() }));
}

beforeEach(async () => {
  clock = new SetClock();
  nodes = new Map(NAMES.map((name) => [name, new Voter({ records: [], floor: 0n, startedAt: clock.now() })]));
  travels = async () => {};
  const answer = (voter: Voter, request: ElectionRequest): unknown => {
    if (request.kind === "beat") return voter.beat(request, at()).answer;
    if (request.kind === "release") return voter.release(request, at());
    throw new Error(`a leader does not ask for ${request.kind}`);
  };
  const ask = async (name: string, request: ElectionRequest): Promise<unknown> => {
    const answered = answer(nodes.get(name)!, request);
    await travels(request);
    return answered;
  };
  const voters: Voters = { names: NAMES, ask: ask as Voters["ask"] };
  for (const voter of nodes.values())
    voter.vote({ kind: "vote", election: "e", term: 1n, bid, leaseMs: LEASE_MS }, at());
  const parts = { voters, clock, election: "e", term: 1n, bid, leaseMs: LEASE_MS };
  leader = new Leader({ ...parts, value: "here", attemptMs: LEASE_MS / 4 });
  expect(await leader.open()).not.toBe("lost");
});

/** What an observer would be told by each. */
const shown = (): (string | undefined)[] =>
  NAMES.map((name) => nodes.get(name)!.who("e", at()).promised?.value);

it("a voter that was started again is told the value again: it says that it knows none", async () => {
  expect(shown()).toEqual(["here", "here", "here"]);
  for (const name of NAMES) restart(name);
  // The first beat cannot know of the restarts; the one after it does.
  await leader.beat();
  await leader.beat();
  expect(shown()).toEqual(["here", "here", "here"]);
});

it("a beat whose acknowledgements arrive after the leader gave up extends nothing", async () => {
  const arrived = deferred<void>();
  travels = async ({ kind }) => {
    if (kind === "beat") await arrived.promise;
  };
  const beat = leader.beat();
  await leader.release();
  arrived.resolve();
  expect(await beat).toBe("lost");
});
