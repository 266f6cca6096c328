/** What goes wrong with stores of records: lost memory, and records that no candidate wrote. */
import type { Fault, Plan } from "./plan.js";
import { Random } from "./random.js";

export const RECORD_FAULT_KINDS = [
  "forge", // somebody who may write to the store writes a record with a token that was never granted
] as const;
export type RecordFaultKind = (typeof RECORD_FAULT_KINDS)[number];

const AMNESIA = 0.2;
const FORGERY = 0.15;
const FORGERIES = 3;

export function addRecordFaults(plan: Plan): Plan {
  if (plan.store === "queue" || plan.cron !== null) return plan;
  const random = new Random(plan.seed, "record");
  const roll = random.next();
  if (roll < AMNESIA) return extended(plan, [lossOfMemory(plan, random)]);
  if (roll > AMNESIA + FORGERY) return plan;
  return extended(
    plan,
    Array.from({ length: FORGERIES }, () => forgery(plan, random)),
  );
}

function extended(plan: Plan, faults: readonly Fault[]): Plan {
  return { ...plan, faults: [...plan.faults, ...faults].sort((a, b) => a.t - b.t) };
}

function lossOfMemory({ ttlMs, healAtMs }: Plan, random: Random): Fault {
  const kind = random.chance(0.3) ? "wipe" : "restore";
  const dur = Math.round(ttlMs * random.between(0.5, 6));
  const t = Math.round(random.between(3 * ttlMs, healAtMs - dur - 2 * ttlMs));
  return { t, kind, target: "leader", dur, arg: share(random) };
}

function forgery({ ttlMs, healAtMs }: Plan, random: Random): Fault {
  const t = Math.round(random.between(2 * ttlMs, healAtMs - 2 * ttlMs));
  return { t, kind: "forge", target: "leader", dur: 0, arg: share(random) };
}

function share(random: Random): number {
  return Math.round(random.next() * 1_000) / 1_000;
}
