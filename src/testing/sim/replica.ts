/** A machine with its clock, and the processes that come and go on it. */
import type { Trouble } from "./network.js";
import { noTrouble } from "./network.js";
import { SimNode } from "./node.js";
import { drawRate, Oscillator } from "./oscillator.js";
import type { Plan } from "./plan.js";
import { Random } from "./random.js";
import type { Scheduler } from "./scheduler.js";
import type { SimCandidate } from "./sim-candidate.js";

const WALL_START = Date.UTC(2025, 0, 1);
/** How far machines' dates are apart at the start: those that run a schedule are set with some care. */
const WALL_SPREAD_MS = 1e6;
const CAREFUL_SPREAD_MS = 3_000;

/** What happens on a node besides running. */
export class Replica {
  candidate: SimCandidate | undefined;
  /** The same in the other elections. */
  sides: SimCandidate[] = [];
  readonly trouble: Trouble = noTrouble();
  serial = 0;
  constructor(readonly node: SimNode) {}
}

/** The true date at which a plan begins. */
export function wallStartOf(plan: Plan): number {
  return plan.cron?.zone?.startMs ?? WALL_START;
}

export function replicaOf(plan: Plan, index: number, scheduler: Scheduler, careful: boolean): Replica {
  const random = new Random(plan.seed, `machine/${index}`);
  const start = {
    mono: random.next() * 1e7,
    boot: random.next() * 1e9,
    wall: wallStartOf(plan) + random.next() * (careful ? CAREFUL_SPREAD_MS : WALL_SPREAD_MS),
  };
  const oscillator = new Oscillator(drawRate(plan.rates, random), start);
  return new Replica(new SimNode(index, plan.seed, scheduler, oscillator));
}
