/** What goes wrong with locks of sessions alone: sessions that end early. And more time, since others follow later. */
import type { Fault, Plan } from "./plan.js";
import { Random } from "./random.js";

export const LOCK_FAULT_KINDS = [
  "leave", // the node leaves the cluster that the store is, and its sessions end at once
] as const;
export type LockFaultKind = (typeof LOCK_FAULT_KINDS)[number];

const LEAVES = 0.4;
const MOST_LEAVES = 4;

export function addLockFaults(plan: Plan): Plan {
  if (plan.store !== "locks") return plan;
  const random = new Random(plan.seed, "locks");
  // Whole seconds are granted.
  const ttlMs = Math.ceil(plan.ttlMs / 1_000) * 1_000;
  const leaves = random.chance(LEAVES) ? random.whole(1, MOST_LEAVES) : 0;
  const faults = [...plan.faults, ...Array.from({ length: leaves }, () => leave(plan, random))];
  return {
    ...plan,
    ttlMs,
    horizonMs: Math.max(plan.horizonMs, plan.healAtMs + 12 * ttlMs),
    faults: faults.sort((a, b) => a.t - b.t),
  };
}

function leave({ ttlMs, healAtMs }: Plan, random: Random): Fault {
  const t = Math.round(random.between(2 * ttlMs, healAtMs - 2 * ttlMs));
  return { t, kind: "leave", target: "leader", dur: 0, arg: Math.round(random.next() * 1_000) / 1_000 };
}
