/** What goes wrong with stores of records: lost memory, and records that no candidate wrote. */
import type { Fault, Plan, StoreKind } from "./plan.js";
import { Random } from "./random.js";

export const RECORD_FAULT_KINDS = [
  "forge", // somebody who may write to the store writes a record with a token that was never granted
  "will", // a leadership that is over is given back by another process, soon or late
  "evict", // an operator bars the leader, whatever its state, from renewing
  "transfer", // the leader hands over to a named candidate, which may be paused, dead or unheard of
  "step", // somebody sets the clock of the store
] as const;
export type RecordFaultKind = (typeof RECORD_FAULT_KINDS)[number];

const AMNESIA = 0.2;
const FORGERY = 0.15;
const FORGERIES = 3;
const STEPPED = 0.35;
const WILLS = 0.25;
const MOST_WILLS = 12;
const EVICTIONS = 0.25;
const MOST_EVICTIONS = 4;
const MOST_STEPS = 4;
const TRANSFERS = 0.25;
const MOST_TRANSFERS = 6;
const STAND_BACK = 0.15;
const ENDLESS_MS = 1e9;

/** Mostly a part of the ttl; sometimes a wish that nobody could grant. */
export function drawStandBack(store: StoreKind, ttlMs: number, random: Random): number | undefined {
  if (store !== "observer" && store !== "timed" && store !== "file") return undefined;
  if (!random.chance(STAND_BACK)) return undefined;
  return random.chance(0.2) ? ENDLESS_MS : Math.round(ttlMs * random.between(0.05, 0.5));
}

export function addRecordFaults(plan: Plan): Plan {
  return addTransfers(addEvictions(addWills(addSteps(addLosses(plan)))));
}

/** Half of the heirs have just been killed, or are about to be: an heir that does not come must block nobody for long. */
function addTransfers(plan: Plan): Plan {
  const random = new Random(plan.seed, "transfer");
  // There somebody has to be quick to follow, and must not be killed meanwhile.
  if (plan.faults.some(({ kind }) => kind === "overrun")) return plan;
  if (plan.cron !== null || !random.chance(TRANSFERS)) return plan;
  const { ttlMs, healAtMs, nodes } = plan;
  const transfer = (): Fault[] => {
    const t = Math.round(random.between(2 * ttlMs, healAtMs - 2 * ttlMs));
    // The node that is to follow; of one that does not exist, nobody comes.
    const target = `n${random.whole(1, nodes + 1)}`;
    const dur = Math.round(ttlMs * random.between(0.2, 1.2));
    const handOver: Fault = { t, kind: "transfer", target, dur, arg: share(random) };
    if (target === `n${nodes + 1}` || random.chance(0.5)) return [handOver];
    const kind = random.chance(0.5) ? "crash" : "pause";
    return [{ t: t - Math.round(ttlMs / 20), kind, target, dur: 2 * ttlMs, arg: 0 }, handOver];
  };
  return extended(plan, Array.from({ length: random.whole(1, MOST_TRANSFERS) }, transfer).flat());
}

/** Also of leaders that are paused at that moment, or are about to be: they must not meet a successor when they wake. */
function addEvictions(plan: Plan): Plan {
  const random = new Random(plan.seed, "evict");
  const evicts = plan.store === "observer" || plan.store === "timed" || plan.store === "file";
  if (!evicts || plan.cron !== null || !random.chance(EVICTIONS)) return plan;
  const { ttlMs, healAtMs } = plan;
  const eviction = (): Fault[] => {
    const t = Math.round(random.between(2 * ttlMs, healAtMs - 2 * ttlMs));
    const evict: Fault = { t, kind: "evict", target: "leader", dur: 0, arg: share(random) };
    if (random.chance(0.5)) return [evict];
    const dur = Math.round(ttlMs * random.between(0.2, 1.5));
    return [{ t: t - Math.round(ttlMs / 10), kind: "pause", target: "leader", dur, arg: 0 }, evict];
  };
  return extended(plan, Array.from({ length: MOST_EVICTIONS }, eviction).flat());
}

/** On every store: several in a row, since most terms are over and gone when their will is executed. */
function addWills(plan: Plan): Plan {
  const random = new Random(plan.seed, "will");
  if (plan.cron !== null || !random.chance(WILLS)) return plan;
  const { ttlMs, healAtMs } = plan;
  const will = (): Fault => {
    const t = Math.round(random.between(2 * ttlMs, healAtMs - ttlMs));
    return { t, kind: "will", target: "leader", dur: 0, arg: share(random) };
  };
  return extended(plan, Array.from({ length: MOST_WILLS }, will));
}

/**
 * Clocks of stores that time leases are set, a little or a lot. Not where the
 * store also loses its memory: versions that went back are not believed for a
 * while, so that nobody has seen them change, and only the store's word is left.
 */
function addSteps(plan: Plan): Plan {
  if (plan.faults.some(({ kind }) => kind === "wipe" || kind === "restore")) return plan;
  const random = new Random(plan.seed, "step");
  if (plan.store !== "timed" || !random.chance(STEPPED)) return plan;
  const { ttlMs, healAtMs } = plan;
  const step = (): Fault => {
    const t = Math.round(random.between(2 * ttlMs, healAtMs - 2 * ttlMs));
    return { t, kind: "step", target: "leader", dur: 0, arg: share(random) };
  };
  return extended(plan, Array.from({ length: random.whole(1, MOST_STEPS) }, step));
}

function addLosses(plan: Plan): Plan {
  if (["queue", "sessions", "peers"].includes(plan.store) || plan.cron !== null) return plan;
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
