/** What goes wrong with etcd alone: sleep with a shared lease, lost memory, loops blocked beyond the deadline. */
import type { Fault, Plan } from "./plan.js";
import { Random } from "./random.js";

export const ETCD_FAULT_KINDS = [
  "nap", // the machine sleeps, and when it wakes a process enters one more election on its old lease
  "wipe", // the store forgets everything
  "restore", // the store goes back to what it was when the fault began
  "overrun", // the leader's event loop is blocked until its deadline has passed, but not its lease
] as const;
export type EtcdFaultKind = (typeof ETCD_FAULT_KINDS)[number];

const NAPS = 0.3;
const AMNESIA = 0.2;
const CALM = 0.08;
/** Overruns are so many ttls apart: by then someone else leads, and has renewed. */
const APART = 3.5;
const OVERRUNS = 9;

/** `suspends`: whether clocks differ so little that a sleep may be missed in part. */
export function addEtcdFaults(plan: Plan, suspends: boolean): Plan {
  if (plan.store !== "queue" || plan.cron !== null) return plan;
  const random = new Random(plan.seed, "etcd");
  const roll = random.next();
  if (roll < NAPS)
    return suspends
      ? extended(
          plan,
          [0, 1, 2].map(() => nap(plan, random)),
        )
      : plan;
  if (roll < NAPS + AMNESIA) return extended(plan, [lossOfMemory(plan, random)]);
  return roll < NAPS + AMNESIA + CALM ? calm(plan, random) : plan;
}

function extended(plan: Plan, faults: readonly Fault[]): Plan {
  return { ...plan, faults: [...plan.faults, ...faults].sort((a, b) => a.t - b.t) };
}

function nap({ ttlMs, healAtMs, nodes }: Plan, random: Random): Fault {
  const dur = Math.round(ttlMs * random.between(0.2, 0.8));
  const t = Math.round(random.between(2 * ttlMs, healAtMs - 3 * ttlMs));
  return { t, kind: "nap", target: `n${random.whole(1, nodes)}`, dur, arg: share(random) };
}

function lossOfMemory({ ttlMs, healAtMs }: Plan, random: Random): Fault {
  const kind = random.pick<EtcdFaultKind>(["wipe", "restore"]);
  const dur = Math.round(ttlMs * random.between(0.5, 6));
  const t = Math.round(random.between(3 * ttlMs, healAtMs - dur - 2 * ttlMs));
  return { t, kind, target: "leader", dur, arg: share(random) };
}

/** Nothing else goes wrong, so that it can be said when the next leader must be there. */
function calm(plan: Plan, random: Random): Plan {
  const { ttlMs } = plan;
  const faults = Array.from({ length: OVERRUNS }, (_, i) => {
    const t = Math.round(ttlMs * (3 + APART * i + random.between(0, 0.4)));
    return { t, kind: "overrun", target: "leader", dur: 0, arg: share(random) } as const;
  });
  const healAtMs = Math.round(ttlMs * (3 + APART * OVERRUNS));
  return {
    ...plan,
    ...{ faults, healAtMs, horizonMs: Math.max(60_000, Math.ceil(healAtMs / 0.8)) },
    latency: { medianMs: 4, sigma: 0.3, tail: 0, tailMaxMs: 0 },
    ...{ loss: { request: 0, answer: 0 }, duplicate: 0, laggard: 0, maxTermMs: null, probe: "always" },
    ...{ fickle: false, sides: Math.min(plan.sides, 2) },
  };
}

function share(random: Random): number {
  return Math.round(random.next() * 1_000) / 1_000;
}
