/** Whether a session is destroyed when its backend closes: what it locked is then open to others after its lock delay. No server. */
import { expect, it } from "vitest";
import type { ConsulClient } from "../../src/backends/consul/client.js";
import { SharedSession } from "../../src/backends/consul/shared-session.js";
import { Watches } from "../../src/backends/consul/watches.js";
import { readClocks } from "../../src/kit/clock.js";
import { SetClock } from "../support/set-clock.js";

const TTL_MS = 10_000;

/** Closes a session; `leads`: while a term may be held on it. Tells whether it was destroyed. */
async function close(lockDelayMs: number, leads: boolean): Promise<boolean> {
  const clock = new SetClock();
  let destroyed = false;
  const never = new Promise<never>(() => {});
  const client: Pick<ConsulClient, "destroySession" | "read" | "transaction"> = {
    destroySession: async () => void (destroyed = true),
    read: () => never,
    transaction: () => never,
  };
  const all = client as ConsulClient;
  const session = new SharedSession({
    ...{ clock, lockDelayMs, client: all, id: "s", ttlMs: TTL_MS, asked: readClocks(clock) },
    watches: new Watches({ client: all, clock, root: "", waitMs: 1_000, wentBack: () => {} }),
    retired: () => {},
  });
  if (leads) session.handedOut(session.enter({ election: "e", candidate: "c", key: "e/.lock" }));
  await session.close(1_000);
  return destroyed;
}

it("one that nobody leads by is destroyed, whatever its lock delay", async () => {
  expect(await close(1_000, false)).toBe(true);
});

it("one that a term may be held by is destroyed only if its lock delay outlasts the term", async () => {
  expect(await close(TTL_MS, true)).toBe(true);
  expect(await close(TTL_MS - 1, true)).toBe(false);
  expect(await close(0, true)).toBe(false);
});
