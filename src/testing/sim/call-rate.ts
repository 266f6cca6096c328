/** How often a candidate may ask its store: a loop without a pause is a violation. */
import type { Monitor } from "./monitor.js";
import type { SimProcess } from "./node.js";
import type { Plan } from "./plan.js";
import type { Traffic } from "./store-parts.js";

/** The calls by which leadership is acquired, as each store names them. */
const WRITES = new Set(["write", "transaction", "link", "create", "vote"]);

/** Far above what a healthy node needs, far below what a loop without a pause does. */
const MOST_CALLS_PER_TTL: Record<Plan["store"], number> = {
  observer: 100,
  timed: 100,
  queue: 250,
  locks: 250,
  file: 500,
  sessions: 250,
  peers: 1_500,
};

/** Of a record: a read and a write, and for files the system calls that these are. */
const CALLS_PER_UPDATE: Record<Plan["store"], number> = {
  observer: 2,
  timed: 2,
  queue: 2,
  locks: 2,
  file: 14,
  sessions: 4,
  peers: 12,
};

export interface WatchedCandidate {
  readonly owner: string;
  readonly process: SimProcess;
  readonly plan: Plan;
  readonly monitor: Monitor;
  /** Updates of a record that its work makes. */
  readonly updatesPerTtl: number;
}

/** Counts the calls of a candidate, and tells the monitor when it tries to be elected. */
export function watchCallRate(traffic: Traffic, candidate: WatchedCandidate): void {
  const { owner, process, plan, monitor, updatesPerTtl } = candidate;
  const { store, sides } = plan;
  // Elections of one process share what they are counted by.
  const most = MOST_CALLS_PER_TTL[store] * (1 + sides / 4) + updatesPerTtl * CALLS_PER_UPDATE[store];
  let window = -1;
  let calls = 0;
  traffic.onCall = (what) => {
    if (WRITES.has(what) && monitor.unended(owner).length === 0) monitor.onCampaigning(process.node);
    const current = Math.floor(process.node.scheduler.now / plan.ttlMs);
    calls = current === window ? calls + 1 : 1;
    window = current;
    if (calls > most)
      monitor.violate("hot-loop", `${owner} asked the store ${calls} times within one ttl (${what})`);
  };
}
