/** The moment a term begins: what can end it right then, and what must not be left behind. */
import { expect, test } from "vitest";
import { Election, memoryBackend } from "../../src/index.js";
import type { Backend } from "../../src/index.js";
import { systemClock } from "../../src/kit/clock.js";
import type { Clock } from "../../src/seam/clock.js";

/** The system's clock, and which of its timers have neither fired nor been cancelled. */
function countingClock(): { clock: Clock; pending: Set<number> } {
  const pending = new Set<number>();
  let last = 0;
  const after: Clock["after"] = (delayMs, callback) => {
    const id = ++last;
    pending.add(id);
    const timer = systemClock.after(delayMs, () => {
      pending.delete(id);
      callback();
    });
    return { cancel: () => (pending.delete(id), timer.cancel()) };
  };
  const clock: Clock = {
    now: () => systemClock.now(),
    wall: () => systemClock.wall(),
    boot: () => systemClock.boot(),
    random: () => systemClock.random(),
    uniqueId: () => systemClock.uniqueId(),
    after,
  };
  return { clock, pending };
}

test("a term that is lost before it begins leaves no timer, not even that of maxTermMs", async () => {
  const { clock, pending } = countingClock();
  const inner = memoryBackend({ clock });
  const backend: Backend = {
    name: "gone",
    guarantees: inner.guarantees,
    records: inner.records,
    observe: (name, options) => inner.observe(name, options),
    campaign: async (candidacy, options) => {
      const hold = await inner.campaign(candidacy, options);
      return (
        hold && {
          token: hold.token,
          asked: hold.asked,
          ttlMs: hold.ttlMs,
          revoked: AbortSignal.abort(),
          renew: (o) => hold.renew(o),
          proclaim: (value, o) => hold.proclaim(value, o),
          release: (o) => hold.release(o),
        }
      );
    },
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  };
  const election = new Election({ name: "e", backend, ttlMs: 3000, maxTermMs: 60_000, clock });
  const term = await election.campaign();
  expect(term.held).toBe(false);
  expect((await term.ended).reason).toBe("revoked");
  await election.close();
  expect(pending.size).toBe(0);
});

test("run() that is stopped between being elected and its work does not start the work", async () => {
  await using election = new Election({ name: "e", backend: memoryBackend(), ttlMs: 1000 });
  const stop = new AbortController();
  let began = false;
  election.on("elected", () => stop.abort());
  await election.run(
    () => {
      began = true;
    },
    { signal: stop.signal },
  );
  expect(began).toBe(false);
});
