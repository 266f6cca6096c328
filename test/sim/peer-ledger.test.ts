/** The simulator's judge of voters: answers wait for disks, and it must judge them in the order of what was asked. */
import { expect, test } from "vitest";
import type { BeatRequest } from "../../src/backends/raft/messages.js";
import { PeerLedger } from "../../src/testing/sim/peer-ledger.js";

const yes = (term: bigint) => ({ kind: "beat", yes: true, term, version: 0 }) as const;

function beat(term: bigint, candidate: string): BeatRequest {
  const bid = { id: `${candidate}-${term}`, candidate };
  const rest = { leaseMs: 3_000, opened: false, version: 0, since: 0, value: "" };
  return { kind: "beat", election: "main", term, bid, ...rest };
}

function ledger(): { ledger: PeerLedger; broken: () => boolean } {
  const rules: string[] = [];
  const monitor = { violate: (rule: string) => void rules.push(rule) };
  return { ledger: new PeerLedger(monitor, 3, () => {}), broken: () => rules.includes("promise") };
}

test("a yes to another candidate during a promise breaks it", () => {
  const { ledger: it, broken } = ledger();
  it.answered("n1", beat(1n, "a"), yes(1n), 100);
  it.answered("n1", beat(2n, "b"), yes(2n), 3_099);
  expect(broken()).toBe(true);
});

test("a promise that is over, or given back, binds nobody", () => {
  for (const [released, at] of [
    [false, 3_100],
    [true, 101],
  ] as const) {
    const { ledger: it, broken } = ledger();
    it.answered("n1", beat(1n, "a"), yes(1n), 100);
    const { bid } = beat(1n, "a");
    if (released) it.asked("n1", { kind: "release", election: "main", term: 1n, ...bid }, 101);
    it.answered("n1", beat(2n, "b"), yes(2n), at);
    expect(broken()).toBe(false);
  }
});

test("a bid given back while its yes waited for the disk ends the older promise that it stood in for", () => {
  const { ledger: it, broken } = ledger();
  const { bid } = beat(2n, "a");
  it.asked("n1", { kind: "release", election: "main", term: 2n, ...bid }, 100);
  it.answered("n1", beat(1n, "a"), yes(1n), 100);
  it.answered("n1", beat(2n, "a"), yes(2n), 100);
  it.answered("n1", beat(3n, "b"), yes(3n), 100);
  expect(broken()).toBe(false);
});
