/** A lock, on a virtual clock: who is served when, what its getters say, what is told when it is lost. */
import { beforeEach, describe, expect, it } from "vitest";
import { Lock } from "../../src/lock/lock.js";
import type { LockOptions } from "../../src/lock/lock.js";
import { SetClock } from "../support/set-clock.js";
import { ATTEMPT_MS, HandBackend, outcome, silence, TTL_MS } from "../support/hand-backend.js";

let clock: SetClock;
let backend: HandBackend;
let lock: Lock;

const open = (over: Partial<LockOptions> = {}): Lock =>
  new Lock({ name: "l", backend, clock, ttlMs: TTL_MS, ...over });

beforeEach(() => {
  clock = new SetClock();
  backend = new HandBackend(clock);
  lock = open();
});

describe("a lock", () => {
  it("shows its term while it is held, and throws where there is none", async () => {
    expect([lock.name, lock.held, lock.term, lock.timing.ttlMs]).toEqual(["l", false, undefined, TTL_MS]);
    for (const read of [() => lock.signal, () => lock.token])
      expect(read).toThrow(
        expect.objectContaining({ code: "state", message: expect.stringMatching("is not held") }),
      );
    const term = await lock.acquire();
    expect([lock.held, lock.term, lock.token, lock.signal]).toEqual([true, term, 1n, term.signal]);
    await lock.release();
    expect([lock.held, term.end?.reason, backend.count("release")]).toEqual([false, "resigned", 1]);
    await lock.release();
    expect(backend.count("release")).toBe(1);
  });

  it("is given up after timeoutMs, with what it waited for, and leaves no timer", async () => {
    backend.onCampaign = silence;
    const waiting = outcome(lock.acquire({ timeoutMs: 70 }));
    await clock.advance(69);
    expect(waiting.settled).toBe(false);
    await clock.advance(1);
    expect(waiting.error).toMatchObject({ code: "timeout", message: 'lock "l" was not free within 70 ms' });
    const closing = outcome(lock.close());
    await clock.advance(ATTEMPT_MS);
    expect([closing.settled, clock.timers]).toEqual([true, 0]);
  });

  it.each([-1, 2 ** 31, Number.NaN, -Infinity])("refuses a timeoutMs of %d", async (timeoutMs) => {
    await expect(lock.acquire({ timeoutMs })).rejects.toMatchObject({ code: "invalid" });
    expect(backend.calls).toEqual([]);
  });

  it.each([0, 2 ** 31 - 1, Infinity, undefined])("takes a timeoutMs of %s", async (timeoutMs) => {
    const term = await lock.acquire({ timeoutMs });
    expect(term.held).toBe(true);
    await lock.close();
    expect(clock.timers).toBe(0);
  });

  it("is not tried while somebody of the same object waits or holds", async () => {
    await lock.acquire();
    expect(await lock.tryAcquire()).toBeNull();
    await lock.release();
    await clock.advance(0);
    expect((await lock.tryAcquire())?.token).toBe(2n);
    await lock.release();
    await clock.advance(0);
    backend.onCampaign = () => null;
    expect(await lock.tryAcquire()).toBeNull();
    backend.onCampaign = () => {
      throw new Error("away");
    };
    await expect(lock.tryAcquire()).rejects.toThrow("away");
    backend.onCampaign = () => {};
    expect((await lock.tryAcquire())?.token).toBe(3n);
    await lock.close();
  });

  it("serves its callers in order, one after the other's end", async () => {
    const first = await lock.acquire();
    const order: bigint[] = [];
    const others = [1, 2].map(() => outcome(lock.acquire().then((term) => (order.push(term.token), term))));
    await clock.advance(0);
    expect([order, backend.count("campaign")]).toEqual([[], 1]);
    await first.resign();
    await clock.advance(0);
    expect(order).toEqual([2n]);
    await others[0]!.value!.resign();
    await clock.advance(0);
    expect(order).toEqual([2n, 3n]);
    await lock.close();
  });

  it("tells those who wait when it is closed, and refuses whoever comes later", async () => {
    await lock.acquire();
    const waiting = outcome(lock.acquire());
    await lock.close();
    await clock.advance(0);
    const closed = { code: "state", message: expect.stringMatching("is closed; open a new one") };
    expect(waiting.error).toMatchObject(closed);
    await expect(lock.acquire()).rejects.toMatchObject(closed);
    await expect(lock.tryAcquire()).rejects.toMatchObject(closed);
    expect(clock.timers).toBe(0);
  });

  it("accepts tokens that begin anew when it is told to", async () => {
    await lock.acquire().then((term) => term.resign());
    await clock.advance(0);
    backend.token = 0n;
    await expect(lock.acquire()).rejects.toMatchObject({ code: "token-regression" });
    backend.token = 0n;
    lock.acceptRegression();
    expect((await lock.acquire()).token).toBe(1n);
    await lock.close();
  });
});

describe("work under a lock", () => {
  it("gets the term, its result is given back, and then the lock", async () => {
    const result = await lock.withLock((term) => [term.token, lock.held]);
    expect([result, lock.held, backend.count("release")]).toEqual([[1n, true], false, 1]);
    await lock.close();
  });

  it("that lost the lock has not succeeded, and its token and the reason are told", async () => {
    backend.onRenew = silence;
    const working = outcome(lock.withLock(() => clock.stall(TTL_MS)));
    await clock.advance(0);
    expect(working.error).toMatchObject({ code: "not-leader", token: 1n });
    expect(working.error).toMatchObject({
      message: expect.stringMatching("the deadline passed without a renewal"),
    });
    expect(backend.count("release")).toBe(0);
    await lock.close();
  });

  it("does not begin if the lock was lost before", async () => {
    backend.granted = { revoked: AbortSignal.abort() };
    let began = false;
    const working = lock.withLock(() => (began = true));
    await expect(working).rejects.toMatchObject({
      code: "not-leader",
      message: /before the work under it began/,
    });
    expect(began).toBe(false);
    await lock.close();
  });

  it("is waited for by close(), as long as drainMs allows", async () => {
    lock = open({ drainMs: 1_000 });
    const working = outcome(lock.withLock(silence));
    await clock.advance(0);
    const closing = outcome(lock.close());
    await clock.advance(999);
    expect([closing.settled, backend.count("release")]).toEqual([false, 0]);
    await clock.advance(TTL_MS);
    expect([closing.settled, backend.count("release"), working.settled]).toEqual([true, 1, false]);
  });
});
