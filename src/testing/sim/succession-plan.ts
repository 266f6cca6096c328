/**
 * Who shall lead next: plans whose candidates have priorities, and plans whose
 * leaders hand over to candidates that live, while something goes wrong in the
 * middle of it.
 */
import type { SimNode } from "./node.js";
import type { Fault, FaultKind, Plan } from "./plan.js";
import { Random } from "./random.js";
import type { SubjectOptions } from "./subject.js";

/** Candidates keep a roster, and are ordered by it. */
export interface RosterPlan {
  /** Of each node, the first one's first. */
  readonly priorities: readonly number[];
  /** Nodes whose candidates stand and may not lead. */
  readonly observers: readonly string[];
  readonly minTermMs: number;
}

type Standing = Pick<SubjectOptions, "priority" | "eligible" | "minTermMs">;

/** Whom a fault befalls that comes in the middle of a handover: who hands over, the heir, or somebody else who waits. */
export const IN_HANDOVER = ["handing", "heir", "waiting"] as const;
export type InHandover = (typeof IN_HANDOVER)[number];

const SHARE = 0.15;
const ROSTERS = 0.5;
const MISHAP = 0.7;
const MISHAPS: readonly [FaultKind, ...FaultKind[]] = [
  "crash",
  "pause",
  "cut",
  "cut",
  "stall",
  "loss",
  "delay",
  "mute",
];
const MOST_HANDOVERS = 6;
const ALL_STAND_BACK = 0.4;
/** In ttls: when all is well each takes its time, so that it can be said who must lead then. */
export const CALM = { first: 5, apart: 2.5, end: 13 } as const;
/** In ttls: a roster has to be seen for some time before it counts. */
const SETTLED = 17;
const LONG_GONE = 5;
/** Of the ttl: no message takes longer, in half of the cases, where it is said that handovers must succeed. */
const NETWORK = 600;

export function addSuccession(plan: Plan): Plan {
  const random = new Random(plan.seed, "succession");
  // There somebody has to be quick to follow, and must not be held up.
  if (plan.faults.some(({ kind }) => kind === "overrun")) return plan;
  if (plan.cron !== null || !random.chance(SHARE)) return plan;
  const orderly = { ...plan, maxTermMs: null, fickle: false, foreign: false };
  // Where there is no queue on etcd, nobody can be named.
  return random.chance(ROSTERS) || plan.oneKey ? withRoster(orderly, random) : withHandovers(orderly, random);
}

/** The one that all prefer is gone for long, and comes back. */
function withRoster(plan: Plan, random: Random): Plan {
  const { nodes, ttlMs, healAtMs } = plan;
  const priorities = Array.from({ length: nodes }, () => random.whole(0, 2));
  const best = priorities.indexOf(Math.max(...priorities));
  const t = Math.round(random.between(3 * ttlMs, healAtMs - (LONG_GONE + 2) * ttlMs));
  const gone: Fault = { t, kind: "crash", target: `n${best + 1}`, dur: LONG_GONE * ttlMs, arg: 0 };
  const observer = random.whole(1, nodes);
  return {
    ...extended(plan, [gone], SETTLED),
    standBackMs: undefined,
    roster: {
      priorities,
      observers: nodes > 3 && observer !== best + 1 && random.chance(0.4) ? [`n${observer}`] : [],
      minTermMs: Math.round(ttlMs * random.between(1.5, 4)),
    },
  };
}

function withHandovers(plan: Plan, random: Random): Plan {
  const { store, nodes, ttlMs, healAtMs } = plan;
  const handover = (): Fault[] => {
    const t = Math.round(random.between(2 * ttlMs, healAtMs - 4 * ttlMs));
    const target = `n${random.whole(1, nodes)}`;
    const dur = Math.round(ttlMs * random.between(0.3, 1.2));
    const faults: Fault[] = [{ t, kind: "transfer", target, dur, arg: share(random) }];
    while (random.chance(MISHAP) && faults.length < 3) {
      const mishap = { kind: random.pick(MISHAPS), target: random.pick(IN_HANDOVER) };
      const lasts = Math.round(ttlMs * random.between(0.2, 2));
      faults.push({ ...mishap, t: t - 1, dur: lasts, arg: share(random) });
    }
    return faults;
  };
  const standsBack = (store === "queue" || store === "sessions") && random.chance(ALL_STAND_BACK);
  return {
    ...extended(plan, Array.from({ length: random.whole(3, MOST_HANDOVERS) }, handover).flat(), CALM.end),
    ...(standsBack && { standBackMs: Math.round(ttlMs * random.between(0.05, 0.5)) }),
    // A queue is put in order within half of the time for one request.
    handovers: plan.latency.medianMs < (ttlMs * plan.ttlShare) / NETWORK ? random.whole(2, 3) : 0,
  };
}

/** A node's part in the roster. */
export function standingOf({ roster }: Plan, { index, id }: Pick<SimNode, "index" | "id">): Standing {
  if (roster === undefined) return {};
  const { priorities, observers, minTermMs } = roster;
  return { priority: priorities[index - 1] ?? 0, eligible: !observers.includes(id), minTermMs };
}

function extended(plan: Plan, faults: readonly Fault[], ttls: number): Plan {
  return {
    ...plan,
    faults: [...plan.faults, ...faults].sort((a, b) => a.t - b.t),
    horizonMs: Math.max(plan.horizonMs, Math.ceil(plan.healAtMs + ttls * plan.ttlMs)),
  };
}

function share(random: Random): number {
  return Math.round(random.next() * 1_000) / 1_000;
}
