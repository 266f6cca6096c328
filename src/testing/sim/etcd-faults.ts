/** What the faults of {@link ETCD_FAULT_KINDS} do to the world. */
import { loseMemory } from "./memory-loss.js";
import { Random } from "./random.js";
import type { Replica } from "./replica.js";
import type { World } from "./world.js";

/** Of the ttl: how much later than by the leader's own clock someone may follow. Timers, and seven messages. */
const TAKEOVER_SLACK = 0.12;
const MARGIN = 0.15;
const LEAST_MARGIN_MS = 250;

/**
 * The machine sleeps, and when it wakes its process campaigns in an election that
 * nobody has stood in before, on a lease that was renewed before the sleep; a
 * second process stands behind it. Soon after it was elected it is cut off.
 */
export function nap(world: World, replica: Replica, until: number, arg: number): void {
  const { scheduler, plan } = world;
  replica.node.hinder("suspended", until);
  const others = world.replicas.filter((each) => each !== replica);
  const [first] = others;
  if (first === undefined) return;
  const rival = new Random(plan.seed, `rival/${until}`).pick([first, ...others.slice(1)]);
  const side = world.addSide();
  side.monitor.onOpened = (node) => {
    if (node !== replica.node) return;
    side.monitor.onOpened = () => {};
    scheduler.at(scheduler.now + (arg * plan.ttlMs) / 4, () => cutOff(world, replica));
  };
  scheduler.at(until, () => world.enter(replica, side));
  scheduler.at(until + plan.ttlMs / 10, () => world.enter(rival, side));
}

function cutOff({ scheduler, plan }: World, { trouble }: Replica): void {
  const until = Math.min(scheduler.now + 3 * plan.ttlMs, plan.healAtMs);
  trouble.requestsCut = Math.max(trouble.requestsCut, until);
  trouble.answersCut = Math.max(trouble.answersCut, until);
}

export function restore(world: World, until: number, arg: number): void {
  const goBack = world.store.memory?.backUp();
  if (goBack !== undefined) world.scheduler.at(until, () => loseMemory(world, goBack, arg));
}

/** Blocks the leader's loop until after its deadline, and demands that someone leads when its lease would have ended. */
export function overrun(world: World, arg: number): void {
  const { monitor, scheduler, plan } = world;
  const record = monitor.leader();
  if (record?.deadline === undefined) return;
  const { oscillator } = record.node;
  const marginMs = Math.max(LEAST_MARGIN_MS, plan.ttlMs * MARGIN) * grantedShare(plan.ttlMs);
  record.node.hinder("stalled", oscillator.whenMono(record.deadline + marginMs * (0.2 + 0.6 * arg)));
  const dueAt = oscillator.whenMono(record.deadline + marginMs) + plan.ttlMs * TAKEOVER_SLACK;
  scheduler.quietly(dueAt, () => {
    monitor.probe(true);
    if (monitor.leader() === undefined)
      monitor.violate("slow-takeover", `nobody leads, although the lease of ${record.token} is over`);
  });
}

/** etcd grants whole seconds. */
function grantedShare(ttlMs: number): number {
  return (Math.ceil(ttlMs / 1000) * 1000) / ttlMs;
}
