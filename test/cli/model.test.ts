import { describe, expect, it } from "vitest";
import { Ledger } from "../../src/cli/demo/ledger.js";
import { advance, emptyStage, leaderOf } from "../../src/cli/demo/model.js";
import type { DemoEvent, DemoState } from "../../src/cli/demo/model.js";
import type { Line, LineEvent } from "../../src/cli/lines.js";

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
const started = (node: string): DemoEvent => ({ kind: "started", at: 0, node, pid: 7 });

describe("the demo's model", () => {
  it("knows who leads by the nodes' own words", () => {
    const state = play(started("a"), started("b"), said("b", "leader"), said("a", "elected", "5"));
    expect(state.nodes).toEqual([
      { name: "a", state: "leader", pid: 7, token: "5" },
      { name: "b", state: "follower", pid: 7, token: undefined },
    ]);
    expect(leaderOf(state)?.name).toBe("a");
    expect(leaderOf(advance(state, said("a", "ended", "5")))).toBeUndefined();
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
    expect(gone.nodes[0]).toEqual({ name: "a", state: "gone", pid: undefined, token: undefined });
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

describe("the ledger", () => {
  it("refuses tokens older than it has seen, and nothing else", () => {
    const ledger = new Ledger();
    expect(ledger.write(5n)).toEqual({ accepted: true, highest: 5n });
    expect(ledger.write(5n)).toEqual({ accepted: true, highest: 5n });
    expect(ledger.write(9n)).toEqual({ accepted: true, highest: 9n });
    expect(ledger.write(5n)).toEqual({ accepted: false, highest: 9n });
  });
});
