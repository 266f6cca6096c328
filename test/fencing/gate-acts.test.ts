/** Acts that take time: who may begin, who has to stop, who waits and for how long. On a virtual clock. */
import { beforeEach, describe, expect, it } from "vitest";
import { Gate, MemoryFence } from "../../src/fencing/index.js";
import type { FenceOptions, GateOptions, Pass } from "../../src/fencing/index.js";
import { StaleLeaderError } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";

let clock: VirtualClock;
let gate: Gate;

const open = (options: GateOptions = {}): Gate => new Gate({ clock, ...options });

beforeEach(() => {
  clock = new VirtualClock();
  gate = open();
});

interface Waiting {
  pass: Pass | undefined;
  error: unknown;
}

function entering(token: bigint, options?: FenceOptions): Waiting {
  const waiting: Waiting = { pass: undefined, error: undefined };
  gate.enter(token, options).then(
    (pass) => (waiting.pass = pass),
    (error: unknown) => (waiting.error = error),
  );
  return waiting;
}

describe("a newer leader", () => {
  it("tells older acts to stop, and begins when the last of them has settled", async () => {
    const [a, b] = [await gate.enter(5n), await gate.enter(5n)];
    const next = entering(7n);
    await clock.advance(0);
    for (const { signal } of [a, b]) {
      expect(signal.reason).toBeInstanceOf(StaleLeaderError);
      expect(signal.reason).toMatchObject({ token: 5n, highest: 7n });
    }
    a.leave();
    await clock.advance(0);
    expect(next.pass).toBeUndefined();
    b.leave();
    await clock.advance(0);
    expect(next.pass?.token).toBe(7n);
    expect(clock.timers).toBe(0);
  });

  it("shuts older leaders out from the moment it comes, not from the moment it begins", async () => {
    const old = await gate.enter(5n);
    const next = entering(7n);
    await clock.advance(0);
    await expect(gate.enter(6n)).rejects.toMatchObject({ token: 6n, highest: 7n });
    await expect(gate.check(5n)).rejects.toMatchObject({ token: 5n, highest: 7n });
    old.leave();
    await clock.advance(0);
    expect(next.pass).toBeDefined();
  });

  it("that is overtaken while it waits does not begin", async () => {
    const old = await gate.enter(5n);
    const [middle, newest] = [entering(6n), entering(7n)];
    await clock.advance(0);
    old.leave();
    await clock.advance(0);
    expect(middle.error).toMatchObject({ token: 6n, highest: 7n });
    expect([middle.pass, newest.pass?.token]).toEqual([undefined, 7n]);
  });

  it("waits for each of three tokens in turn, and never acts beside an older one", async () => {
    const passes = [await gate.enter(1n)];
    const order: bigint[] = [];
    for (const token of [2n, 3n]) {
      const waiting = entering(token);
      await clock.advance(0);
      expect(waiting.pass).toBeUndefined();
      passes.pop()!.leave();
      await clock.advance(0);
      order.push(waiting.pass!.token);
      passes.push(waiting.pass!);
    }
    expect(order).toEqual([2n, 3n]);
  });

  it("is turned away after ten seconds, with an error that may be tried again, and nothing of it stays", async () => {
    const old = await gate.enter(5n);
    const next = entering(7n);
    await clock.advance(9_999);
    expect(next.error).toBeUndefined();
    await clock.advance(1);
    expect(next.error).toMatchObject({ code: "unavailable", retriable: true });
    expect(next.error).toMatchObject({ message: expect.stringContaining("within 10000 ms") });
    old.leave();
    expect((await gate.enter(7n)).token).toBe(7n);
    expect(clock.timers).toBe(0);
  });

  it("waits as long as drainMs says", async () => {
    gate = open({ drainMs: 50 });
    await gate.enter(5n);
    const next = entering(7n);
    await clock.advance(49);
    expect(next.error).toBeUndefined();
    await clock.advance(1);
    expect(next.error).toMatchObject({ code: "unavailable" });
  });

  it("that gives up is told its own reason, and leaves no timer", async () => {
    await gate.enter(5n);
    const given = new AbortController();
    const next = entering(7n, { signal: given.signal });
    await clock.advance(10);
    given.abort(new Error("given up"));
    await clock.advance(0);
    expect(next.error).toMatchObject({ message: "given up" });
    expect(clock.timers).toBe(0);
  });
});

describe("acts of one leader", () => {
  it("run side by side, and none of them is told to stop", async () => {
    const passes = [await gate.enter(5n), await gate.enter(5n)];
    expect(passes.map(({ signal }) => signal.aborted)).toEqual([false, false]);
    expect(clock.timers).toBe(0);
  });

  it("are told to stop with a reason, and count until they have left", async () => {
    const pass = await gate.enter(5n);
    pass.stop(new Error("the caller has gone"));
    expect(pass.signal.reason).toMatchObject({ message: "the caller has gone" });
    const next = entering(7n);
    await clock.advance(0);
    expect(next.pass).toBeUndefined();
    pass.leave();
    await clock.advance(0);
    expect(next.pass).toBeDefined();
  });

  it("return what they return, and leave whatever they throw", async () => {
    expect(await gate.run(5n, ({ token }) => `done by ${token}`)).toBe("done by 5");
    await expect(gate.run(5n, () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
    expect((await gate.enter(6n)).token).toBe(6n);
  });
});

describe("a gate with a fence of its own", () => {
  it("asks the fence first: a token that it refuses shuts nobody out here", async () => {
    const options = { signal: new AbortController().signal };
    const asked: unknown[] = [];
    const fence = {
      check: async (token: bigint, given?: FenceOptions) => {
        asked.push([token, given]);
        if (token === 9n) throw new Error("cannot be asked");
      },
    };
    gate = open({ fence });
    await expect(gate.check(9n, options)).rejects.toThrow("cannot be asked");
    await gate.check(7n, options);
    expect(asked).toEqual([
      [9n, options],
      [7n, options],
    ]);
  });

  it("knows what the fence has seen elsewhere", async () => {
    gate = open({ fence: new MemoryFence({ highest: 8n }) });
    await expect(gate.run(7n, () => "acted")).rejects.toMatchObject({ highest: 8n });
    expect(await gate.run(8n, () => "acted")).toBe("acted");
  });
});

describe("a gate bound to a term", () => {
  it("acts under its token, and not at all once it is over", async () => {
    let held = true;
    const { signal } = new AbortController();
    const assertHeld = (): void => {
      if (!held) throw new Error("over");
    };
    const acts = gate.bind({ token: 5n, signal, assertHeld });
    expect(await acts.run(({ token }) => token)).toBe(5n);
    held = false;
    let acted = false;
    await expect(acts.run(() => (acted = true))).rejects.toThrow("over");
    expect(acted).toBe(false);
  });
});

describe("a fence in memory", () => {
  it("begins where its resource left off, and with nothing otherwise", () => {
    expect(new MemoryFence().highest).toBeNull();
    expect(new MemoryFence({ highest: null }).highest).toBeNull();
    const fence = new MemoryFence({ highest: 5n });
    expect(() => fence.check(4n)).toThrow(StaleLeaderError);
    fence.check(5n);
    fence.check(6n);
    expect(fence.highest).toBe(6n);
    expect(() => new MemoryFence({ highest: -1n })).toThrow(/fencing token/);
  });
});
