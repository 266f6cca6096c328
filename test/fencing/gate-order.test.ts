/** The gate before three leaders and more: an older one never acts beside a newer one, nor after it. */
import { expect, test } from "vitest";
import { Gate, MemoryFence } from "../../src/fencing/index.js";
import type { Pass } from "../../src/fencing/index.js";
import { StaleLeaderError } from "../../src/index.js";
import type { Fence } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";
import { Random } from "../../src/testing/sim/random.js";

async function hops(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await Promise.resolve();
}

/** Everything that can happen without time passing has happened. */
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test("three tokens: the second waits for the first, and does not act once the third has come", async () => {
  const gate = new Gate();
  const first = await gate.enter(1n);
  const second = gate.enter(2n).catch((error: unknown) => error);
  await settled();
  expect(first.signal.reason).toMatchObject({ code: "stale-leader", token: 1n, highest: 2n });
  let entered: Pass | undefined;
  const third = gate.enter(3n).then((pass) => (entered = pass));
  await settled();
  expect(entered, "the first is still at it").toBeUndefined();
  first.leave();
  expect(await second).toMatchObject({ code: "stale-leader", token: 2n, highest: 3n });
  expect((await third).token).toBe(3n);
  await expect(gate.enter(1n)).rejects.toThrow(StaleLeaderError);
  expect(entered?.signal.aborted).toBe(false);
  entered?.leave();
});

test("four tokens: the newest waits for the acts of all before it", async () => {
  const gate = new Gate();
  const acts = await Promise.all([gate.enter(1n), gate.enter(1n)]);
  let entered = false;
  const newest = gate.enter(4n).then((pass) => {
    entered = true;
    return pass;
  });
  const others = Promise.allSettled([gate.enter(2n), gate.enter(3n)]);
  await settled();
  expect(acts.map(({ signal }) => signal.aborted)).toEqual([true, true]);
  acts[0].leave();
  await settled();
  expect(entered).toBe(false);
  acts[1].leave();
  (await newest).leave();
  for (const { status } of await others) expect(status).toBe("rejected");
});

test("one that gave up waiting lets nobody older past, and gets in when it asks again", async () => {
  const clock = new VirtualClock();
  const gate = new Gate({ drainMs: 1_000, clock });
  const first = await gate.enter(1n);
  const impatient = gate.enter(3n).catch((error: unknown) => error);
  await clock.advance(1_000);
  expect(await impatient).toMatchObject({ code: "unavailable", retriable: true });
  await expect(gate.enter(2n)).rejects.toMatchObject({ code: "stale-leader", highest: 3n });
  const again = gate.enter(3n);
  await settled(); // it waits
  first.leave();
  expect((await again).token).toBe(3n);
  expect(clock.timers).toBe(0);
});

test("one whose signal aborts while it waits does nothing, and leaves no timer", async () => {
  const clock = new VirtualClock();
  const gate = new Gate({ clock });
  const first = await gate.enter(1n);
  const stop = new AbortController();
  const reason = new Error("changed my mind");
  const waiting = gate.enter(2n, { signal: stop.signal }).catch((error: unknown) => error);
  await settled();
  stop.abort(reason);
  expect(await waiting).toBe(reason);
  expect(clock.timers).toBe(0);
  first.leave();
});

test("a token that the durable fence cannot be asked about shuts nobody out", async () => {
  const memory = new MemoryFence();
  const gate = new Gate({
    fence: {
      check: (token) => {
        if (token === 9n) throw new Error("away");
        memory.check(token);
      },
    },
  });
  await expect(gate.enter(9n)).rejects.toThrow("away");
  (await gate.enter(5n)).leave();
});

test("an act that has left is not told to stop", async () => {
  const gate = new Gate();
  const first = await gate.enter(1n);
  first.leave();
  (await gate.enter(2n)).leave();
  expect(first.signal.aborted).toBe(false);
});

/** A fence elsewhere: it takes a while to be asked, and a while to answer. */
function remote(random: Random): Fence {
  const memory = new MemoryFence();
  return {
    check: async (token) => {
      await hops(random.whole(0, 6));
      memory.check(token);
      await hops(random.whole(0, 6));
    },
  };
}

/** Many leaders at one gate, each with several acts. What went wrong, if anything. */
async function crowd(seed: number): Promise<string[]> {
  const random = new Random(seed, "gate");
  const gate = new Gate(random.chance(0.5) ? { fence: remote(random) } : {});
  const wrong: string[] = [];
  const acting = new Map<object, bigint>();
  let newest = -1n;
  const act = async (token: bigint): Promise<void> => {
    await hops(random.whole(0, 30));
    await gate.run(token, async ({ signal }) => {
      const self = {};
      if (signal.aborted) wrong.push(`${token} began though it had been told to stop`);
      if (token < newest) wrong.push(`${token} began after ${newest}`);
      for (const other of acting.values()) if (other !== token) wrong.push(`${token} beside ${other}`);
      newest = token;
      acting.set(self, token);
      const heard = random.chance(0.5) ? signal : new AbortController().signal;
      for (let left = random.whole(0, 20); left > 0 && !heard.aborted; left--) await hops(1);
      acting.delete(self);
    });
  };
  const tokens = Array.from({ length: 16 }, () => BigInt(random.whole(1, 6)));
  const outcomes = await Promise.allSettled(tokens.map(act));
  outcomes.forEach((outcome, i) => {
    if (outcome.status === "rejected" && !(outcome.reason instanceof StaleLeaderError))
      wrong.push(`${tokens[i]}: ${String(outcome.reason)}`);
    if (outcome.status === "rejected" && tokens[i] === tokens.toSorted(descending)[0])
      wrong.push(`${tokens[i]} was refused, and nothing newer ever came`);
  });
  return wrong.map((what) => `seed ${seed}: ${what}`);
}

const descending = (a: bigint, b: bigint): number => (a < b ? 1 : a > b ? -1 : 0);

test("2,000 crowds of leaders: one token at a time, and never a lower one after a higher", async () => {
  const wrong: string[] = [];
  for (let seed = 1; seed <= 2_000; seed++) wrong.push(...(await crowd(seed)));
  expect(wrong).toEqual([]);
});
