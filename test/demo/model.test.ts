import { describe, expect, it } from "vitest";
import { Ledger } from "../../src/demo/ledger.js";
import { advance, emptyStage, leadingNode } from "../../src/demo/model.js";
import type { DemoEvent, DemoState } from "../../src/demo/model.js";
import type { Line, LineEvent } from "../../src/terminal/lines.js";

function line(event: LineEvent, token: string | null = null): Line {
  return { event, at: 0, election: "demo", candidate: "a-1", token };
}

function play(...events: DemoEvent[]): DemoState {
  return events.reduce(advance, emptyStage(["a", "b"]));
}

const said = (node: string, event: LineEvent, token?: string): DemoEvent => ({
  kind: "said",
  at: 0,
  node,
  line: line(event, token ?? null),
});
const at = (event: LineEvent, node: string, token: string, when: number, reason?: string): DemoEvent => ({
  kind: "said",
  at: when,
  node,
  line: { ...line(event, token), at: when, ...(reason !== undefined && { reason }) },
});
const lease = (node: string, token: string, when: number): DemoEvent => ({
  kind: "lease",
  at: when,
  node,
  token,
  remainingMs: 80,
  marginMs: 20,
});
const signalled = (node: string, signal: "SIGSTOP" | "SIGCONT" | "SIGKILL", when: number): DemoEvent => ({
  kind: "signalled",
  at: when,
  node,
  signal,
});
const started = (node: string): DemoEvent => ({ kind: "started", at: 0, node, pid: 7 });

describe("the demo's model", () => {
  it("knows who leads by the nodes' own words", () => {
    const state = play(started("a"), started("b"), said("b", "leader"), said("a", "elected", "5"));
    expect(state.nodes).toMatchObject([
      { name: "a", state: "leader", pid: 7, token: "5" },
      { name: "b", state: "follower", pid: 7, token: undefined },
    ]);
    expect(leadingNode(state)?.name).toBe("a");
    expect(leadingNode(advance(state, said("a", "ended", "5")))).toBeUndefined();
  });

  it("knows the frozen and the gone", () => {
    const leading = play(started("a"), said("a", "elected", "5"));
    const frozen = advance(leading, { kind: "signalled", at: 0, node: "a", signal: "SIGSTOP" });
    expect(frozen.nodes[0]).toMatchObject({ state: "frozen" });
    const woken = advance(frozen, { kind: "signalled", at: 0, node: "a", signal: "SIGCONT" });
    expect(advance(woken, said("a", "ended")).nodes[0]).toMatchObject({
      state: "follower",
      token: undefined,
    });
    const gone = advance(leading, { kind: "exited", at: 0, node: "a", how: "SIGKILL" });
    expect(gone.nodes[0]).toMatchObject({ name: "a", state: "gone", pid: undefined, token: undefined });
  });

  it("knows one that woke up in time to be still leading", () => {
    const frozen = play(started("a"), said("a", "elected", "5"), signalled("a", "SIGSTOP", 10));
    const woken = advance(frozen, signalled("a", "SIGCONT", 20));
    expect(advance(woken, said("a", "work", "5")).nodes[0]).toMatchObject({ state: "leader", token: "5" });
    expect(advance(woken, said("a", "leader", "6")).nodes[0]).toMatchObject({ state: "follower" });
  });

  it("knows jeopardy, the cut off, newcomers and leavers", () => {
    const leading = play(started("a"), said("a", "elected", "5"));
    const cut = advance(leading, { kind: "cut", at: 0, node: "a", on: true });
    expect(advance(cut, said("a", "jeopardy", "5")).nodes[0]).toMatchObject({ cut: true, jeopardy: true });
    expect(advance(cut, said("a", "ended", "5")).nodes[0]).toMatchObject({ cut: true, jeopardy: false });
    const more = advance(leading, { kind: "added", at: 0, node: "c" });
    expect(more.nodes.map(({ name }) => name)).toEqual(["a", "b", "c"]);
    expect(advance(more, { kind: "removed", at: 0, node: "b" }).nodes.map(({ name }) => name)).toEqual([
      "a",
      "c",
    ]);
  });

  it("counts what the ledger accepts and refuses, and is plain data", () => {
    const write = (accepted: boolean): DemoEvent => ({
      kind: "write",
      at: 0,
      node: "a",
      token: "5",
      accepted,
      highest: "6",
      late: !accepted,
    });
    const state = play(write(true), write(true), write(false));
    expect(state).toMatchObject({ accepted: 2, refused: 1, highest: "6" });
    expect(JSON.parse(JSON.stringify(state))).toMatchObject({ accepted: 2 });
  });
});

describe("terms", () => {
  const begun = [at("elected", "a", "5", 100), lease("a", "5", 100)];

  it("last while they are renewed, and end when they are given up", () => {
    const leading = play(...begun, lease("a", "5", 150));
    expect(leading.terms).toEqual([{ node: "a", token: "5", from: 100, deadline: 230, leaseEnd: 250 }]);
    const resigned = advance(leading, at("ended", "a", "5", 160, "resigned"));
    expect(resigned.terms[0]).toMatchObject({ to: 160, reason: "resigned" });
  });

  it("of a frozen leader end at its deadline, however late it wakes up", () => {
    const frozen = play(...begun, signalled("a", "SIGSTOP", 120), at("elected", "b", "6", 210));
    expect(frozen.terms).toMatchObject([
      { token: "5", to: 180, stoppedAt: 120 },
      { token: "6", from: 210 },
    ]);
    const woken = advance(frozen, at("ended", "a", "5", 900, "expired"));
    expect(woken.terms[0]).toMatchObject({ to: 180, reason: "expired" });
  });

  it("go on if it wakes up in time", () => {
    const woken = play(...begun, signalled("a", "SIGSTOP", 120), signalled("a", "SIGCONT", 130));
    expect(advance(woken, lease("a", "5", 140)).terms[0]).toEqual({
      node: "a",
      token: "5",
      from: 100,
      deadline: 220,
      leaseEnd: 240,
    });
  });

  it("of a killed leader end when it was killed", () => {
    const killed = play(...begun, signalled("a", "SIGKILL", 120), {
      kind: "exited",
      at: 140,
      node: "a",
      how: "SIGKILL",
    });
    expect(killed.terms[0]).toMatchObject({ to: 120, reason: "killed" });
  });
});

describe("the ledger", () => {
  it("refuses tokens older than it has seen, and nothing else", () => {
    const ledger = new Ledger();
    expect(ledger.write(5n)).toEqual({ accepted: true, highest: 5n });
    expect(ledger.write(5n)).toEqual({ accepted: true, highest: 5n });
    expect(ledger.write(9n)).toEqual({ accepted: true, highest: 9n });
    expect(ledger.write(5n)).toEqual({ accepted: false, highest: 9n });
  });
});
