/**
 * A schedule as data: everything that one simulated run depends on. A plan can
 * be printed, kept, edited and run again; a seed is only the shortest way to
 * write one down.
 */
import { drawCron, retarget } from "./cron-plan.js";
import type { CronPlan } from "./cron-plan.js";
import { addEtcdFaults } from "./etcd-plan.js";
import type { EtcdFaultKind } from "./etcd-plan.js";
import { Random } from "./random.js";
import { addRecordFaults, drawStandBack } from "./record-plan.js";
import type { RecordFaultKind } from "./record-plan.js";
import { addLockFaults } from "./lock-plan.js";
import type { LockFaultKind } from "./lock-plan.js";
import { addSuccession } from "./succession-plan.js";
import type { RosterPlan } from "./succession-plan.js";

export const STORE_KINDS = ["observer", "timed", "queue", "locks", "file", "sessions", "peers"] as const;
/** Which store the candidates stand before: records timed by observers or by the store, a queue (etcd), locks of sessions (Consul), files, sessions (ZooKeeper), or voters among themselves (Raft). */
export type StoreKind = (typeof STORE_KINDS)[number];

export const FAULT_KINDS = [
  "pause", // SIGSTOP, SIGCONT
  "stall", // the event loop is blocked, the process runs
  "crash", // SIGKILL, and a new start after a while
  "power", // all machines lose power at once; what was not made durable is gone
  "suspend", // the machine sleeps: monotonic time stands still
  "rate", // the clock runs faster or slower
  "jump", // the wall clock is set
  "cut", // the network is cut: both ways, requests only, answers only
  "loss", // many requests and answers get lost
  "delay", // many messages take longer than the ttl
  "duplicate", // requests arrive twice, the second time late
  "mute", // watches say nothing
  "stale", // reads are answered by a replica that lags
  "errors", // the store answers with errors
  "slow", // the store is slow
  "freeze", // the store is stopped for a while
  "deposed", // keep-alives are answered by a store leader that is none any more, or pings by a follower that is cut off (queue, sessions)
  "resign", // the leader gives up leadership
  "reopen", // an election is closed, and opened again or, sometimes, not
  "throw", // the work throws
  "return", // the work returns
  "ignore", // the work ignores its signal for a while
  "proclaim", // the leader publishes a new value
  "burst", // and many of them, one after the other
] as const;
/** Any of them can befall any store; those of etcd alone are drawn apart. */
export type FaultKind = (typeof FAULT_KINDS)[number] | EtcdFaultKind | RecordFaultKind | LockFaultKind;

export interface Fault {
  /** When, in true milliseconds. */
  readonly t: number;
  readonly kind: FaultKind;
  /**
   * A node (`n1`); `leader`: whoever leads at that moment, a random node if
   * nobody does; `next`: whoever is elected next, at that moment; `stand`:
   * whoever next tries to be elected, its write on the way; of a schedule
   * `claim` and `run`: whoever next claims an instant (the store has it, the
   * answer is on its way) or begins a job, at that moment; `handing`, `heir`,
   * `waiting`: the leader that next hands over, its heir, another, meanwhile.
   */
  readonly target: string;
  /** How long, in true milliseconds. */
  readonly dur: number;
  /** What this kind needs besides: a rate, a jump, a direction; uniform in [0, 1). */
  readonly arg: number;
}

export interface Latency {
  readonly medianMs: number;
  readonly sigma: number;
  /** How often a message takes far longer, and how long at most. */
  readonly tail: number;
  readonly tailMaxMs: number;
}

export interface Plan {
  readonly seed: number;
  readonly store: StoreKind;
  readonly nodes: number;
  readonly ttlMs: number;
  /** Longest pause between two looks at the store. */
  readonly retryMs: number;
  readonly horizonMs: number;
  /** From here on nothing goes wrong any more. */
  readonly healAtMs: number;
  readonly latency: Latency;
  readonly loss: { readonly request: number; readonly answer: number };
  readonly duplicate: number;
  /** Clocks run between these rates; their ratio stays within what the margin permits. */
  readonly rates: { readonly low: number; readonly high: number };
  /** Whether the store offers a watch. */
  readonly watch: boolean;
  readonly maxTermMs: number | null;
  /** All candidates give the same readable id: only the random part tells them apart. */
  readonly sameId: boolean;
  /** Every other candidate has this share of the ttl. */
  readonly ttlShare: number;
  /** The first node is of another release: the others cannot read its records (observer-timed records only). */
  readonly foreign: boolean;
  /** The records are Leases of an API server (observer-timed records only). Plans of before: no. */
  readonly lease?: boolean;
  /** Reads that do not lag say that they are current. Plans of before: no. */
  readonly vouches?: boolean;
  /** A watch brings the new version with it. Plans of before: no. */
  readonly pushes?: boolean;
  /** Share of the ttl after which a silent leader stops; default as the library has it. */
  readonly stopShare?: number | undefined;
  /** Number of a node whose messages are often late, though not too late; 0 = none. */
  readonly laggard: number;
  /** Whoever is elected publishes many values at once. */
  readonly chatty: boolean;
  /** etcd: one key instead of a queue of them. */
  readonly oneKey: boolean;
  /** etcd: so many more elections in every process, on the same lease. */
  readonly sides: number;
  /** Candidates give campaigns up and campaign again, and do not wait for the end of their terms. Plans of before: no. */
  readonly fickle?: boolean;
  /** All candidates leave a vacancy to others for so long, by their own wish. Plans of before: no. */
  readonly standBackMs?: number | undefined;
  /** Candidates keep a roster. Plans of before: no. */
  readonly roster?: RosterPlan;
  /** How often the leader hands over once all is well; the heir must be next. Plans of before: not at all. */
  readonly handovers?: number;
  /** How often the getters are asked: after every event, or only now and then, so that the timers must do their part. */
  readonly probe: "always" | "seldom";
  /** In leadership a schedule is run; else work that lasts as long as the term. */
  readonly cron: CronPlan | null;
  readonly faults: readonly Fault[];
}

/**
 * A margin of 15 % permits a ratio of 1/0.85 = 1.176 between the fastest and the
 * slowest clock. What the holder may miss of a suspend (a quarter of the
 * margin) comes out of the same purse.
 */
const WIDEST_RATIO = 1.16;
const WIDEST_RATIO_WITH_SUSPEND = 1.11;

const LONGEST_DELAY_MS = 6_000;

/** What is done leading. */
export const SUBJECTS = ["election", "schedule"] as const;
export type SubjectKind = (typeof SUBJECTS)[number];

export interface PlanOptions {
  readonly stores?: readonly StoreKind[];
  /** Default: one plan in six has a schedule. */
  readonly subject?: SubjectKind | undefined;
}

const SCHEDULES = 1 / 6;
const FICKLE = 0.15;
const LEASES = 0.25;
/** With one under way two can wait for it, and be asked about together. */
const FEWEST_SIDES = 2;
const MOST_SIDES = 6;
/** One plan in so many of those with several elections has more keys on a lease than one transaction can look at. */
const CROWDS = 1 / 20;
/** From so many on it is a crowd: only two of the nodes stand in all of the elections. */
export const CROWD = 60;

export function planOf(seed: number, options: PlanOptions = {}): Plan {
  const random = new Random(seed, "plan");
  const kinds = swarm(random);
  const ttlMs = random.whole(20, 36) * 100;
  const horizonMs = 60_000 + random.whole(0, 10) * 1_000;
  const chance = new Random(seed, "cron");
  const scheduled = chance.next() < SCHEDULES;
  const cron =
    (options.subject ?? (scheduled && "schedule")) === "schedule"
      ? drawCron(chance, new Random(seed, "zone"))
      : null;
  // A schedule has to catch up as well.
  const healAtMs = Math.floor(horizonMs * (cron === null ? 0.8 : 0.7));
  const standing = new Random(seed, "stand");
  const store = drawStore(random, options.stores ?? STORE_KINDS, seed);
  // Every look at the file room is a dozen system calls: fewer nodes keep its schedules as short as the others.
  const nodes = random.whole(3, store === "file" ? 4 : 5);
  const ratio = kinds.includes("suspend") ? WIDEST_RATIO_WITH_SUSPEND : WIDEST_RATIO;
  const low = random.between(0.9, 1.1 / ratio);
  const plan: Plan = {
    seed,
    store,
    nodes,
    ttlMs,
    retryMs: Math.round(ttlMs * (store === "file" ? random.between(0.35, 0.6) : random.between(0.2, 0.5))),
    horizonMs,
    healAtMs,
    latency: {
      medianMs: round(Math.min(20, random.logNormal(4, 1))),
      sigma: round(random.between(0.2, 0.8)),
      tail: kinds.includes("delay") ? 0.02 : 0,
      tailMaxMs: LONGEST_DELAY_MS,
    },
    loss: kinds.includes("loss")
      ? { request: round(random.between(0, 0.03)), answer: round(random.between(0, 0.03)) }
      : { request: 0, answer: 0 },
    duplicate: kinds.includes("duplicate") ? 0.02 : 0,
    rates: { low: round(low), high: round(low * ratio) },
    watch: random.chance(0.6),
    maxTermMs: random.chance(0.25) ? random.whole(2, 4) * ttlMs : null,
    sameId: random.chance(0.3),
    ttlShare: store !== "queue" && random.chance(0.3) ? 0.6 : 1,
    foreign: store === "observer" && random.chance(0.3),
    lease: store === "observer" && new Random(seed, "lease").chance(LEASES),
    vouches: new Random(seed, "vouches").chance(0.5),
    pushes: new Random(seed, "pushes").chance(0.5),
    stopShare: store === "timed" && new Random(seed, "stop").chance(0.3) ? 0.65 : undefined,
    laggard: random.chance(0.4) ? random.whole(1, nodes) : 0,
    chatty: random.chance(store === "file" ? 0.3 : 0.05),
    oneKey: store === "queue" && random.chance(0.3),
    fickle: new Random(seed, "fickle").chance(FICKLE),
    sides:
      (store === "queue" || store === "locks" || store === "peers") && random.chance(0.2)
        ? drawSides(new Random(seed, "sides"))
        : 0,
    standBackMs: drawStandBack(store, ttlMs, new Random(seed, "stand-back")),
    probe: random.chance(0.7) ? "always" : "seldom",
    cron,
    faults: drawFaults(random, kinds, { nodes, ttlMs, healAtMs })
      .map((fault) => (cron === null ? fault : retarget(fault, chance)))
      .map((fault) => changeOfMind(fault, standing)),
  };
  return addSuccession(addLockFaults(addRecordFaults(addEtcdFaults(plan, kinds.includes("suspend")))));
}

/** How often each store is drawn. */
const WEIGHTS: Record<StoreKind, number> = {
  observer: 33,
  timed: 30,
  queue: 25,
  locks: 15,
  file: 12,
  sessions: 0,
  peers: 0,
};
/** Of all plans; drawn apart, so that the others are as they were. */
const SESSIONS = 0.12;
/** Of the others. */
const PEERS = 0.25;

function drawStore(random: Random, stores: readonly StoreKind[], seed: number): StoreKind {
  let drawn = drawWeighted(random, stores);
  for (const [store, share] of [
    ["sessions", SESSIONS],
    ["peers", PEERS],
  ] as const)
    if (stores.includes(store) && (stores.length === 1 || new Random(seed, store).chance(share)))
      drawn = store;
  return drawn;
}

function drawWeighted(random: Random, stores: readonly StoreKind[]): StoreKind {
  let roll = random.next() * stores.reduce((sum, store) => sum + WEIGHTS[store], 0);
  return stores.find((store) => (roll -= WEIGHTS[store]) < 0) ?? "observer";
}

function drawSides(random: Random): number {
  const most = random.whole(FEWEST_SIDES, MOST_SIDES);
  return random.chance(CROWDS) ? CROWD + most : most;
}

/** Swarm testing: a random half of the kinds, so that rare mixes are met too. */
function swarm(random: Random): [FaultKind, ...FaultKind[]] {
  const on = FAULT_KINDS.filter(() => random.chance(0.5));
  // Something must end terms, or nothing is tested.
  const lethal = random.pick<FaultKind>(["pause", "crash", "cut", "stall"]);
  return [lethal, ...on.filter((kind) => kind !== lethal)];
}

function drawFaults(
  random: Random,
  kinds: [FaultKind, ...FaultKind[]],
  { nodes, ttlMs, healAtMs }: { nodes: number; ttlMs: number; healAtMs: number },
): Fault[] {
  const count = random.whole(8, 16);
  const faults: Fault[] = [];
  for (let i = 0; i < count; i++) {
    const dur = Math.round(ttlMs * (random.chance(0.3) ? random.between(0.1, 0.9) : random.between(0.8, 3)));
    const t = Math.round(random.between(ttlMs, healAtMs - dur - ttlMs));
    const aim = random.next();
    const target = aim < 0.45 ? "leader" : aim < 0.65 ? "next" : `n${random.whole(1, nodes)}`;
    const drawn = random.pick(kinds);
    // The moment after an election is when a grant that was counted wrongly shows: cut the winner off.
    const kind = target === "next" && random.chance(0.4) ? "cut" : drawn;
    faults.push({ t, kind, target, dur, arg: round(random.next()) });
  }
  return faults.sort((a, b) => a.t - b.t);
}

/** Half of those that close do so while they try to be elected: what they wrote must not keep others out. */
function changeOfMind(fault: Fault, random: Random): Fault {
  return fault.kind === "reopen" && random.chance(0.5) ? { ...fault, target: "campaigning" } : fault;
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
