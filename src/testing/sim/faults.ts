/** What each kind of fault does to the world. */
import { isMoment } from "./ambushes.js";
import { nap, overrun, restore } from "./etcd-faults.js";
import { loseMemory } from "./memory-loss.js";
import type { Fault } from "./plan.js";
import { Random } from "./random.js";
import { transferTo } from "./transfers.js";
import { evictLeader, executeWill } from "./wills.js";
import type { Replica } from "./replica.js";
import type { World } from "./world.js";

export function applyFault(world: World, fault: Fault, index: number): void {
  const { target } = fault;
  if (isMoment(target)) world.ambushes.add(target, (replica) => hit(world, fault, replica));
  else hit(world, fault, aim(world, fault, index));
}

function hit(world: World, fault: Fault, replica: Replica): void {
  const { now } = world.scheduler;
  if (now >= world.plan.healAtMs) return;
  const until = Math.min(now + fault.dur, world.plan.healAtMs);
  world.monitor.note(`fault ${fault.kind} on ${replica.node.id} until ${(until / 1000).toFixed(3)} s`);
  strike(world, fault, replica, until);
}

/** Most faults aim at whoever leads. */
function aim(world: World, fault: Fault, index: number): Replica {
  const { replicas, plan } = world;
  const leader = fault.target === "leader" ? world.monitor.leader()?.node.id : fault.target;
  const named = replicas.find((replica) => replica.node.id === leader);
  if (named !== undefined) return named;
  const first = replicas[0];
  if (first === undefined) throw new Error("a plan needs at least one node");
  return new Random(plan.seed, `aim/${index}`).pick([first, ...replicas.slice(1)]);
}

function strike(world: World, fault: Fault, replica: Replica, until: number): void {
  const { kind, arg } = fault;
  const { node, trouble } = replica;
  const { host, plan, scheduler } = world;
  switch (kind) {
    case "pause":
      return node.hinder("paused", until);
    case "stall":
      return node.hinder("stalled", until);
    case "suspend":
      return node.hinder("suspended", until);
    case "crash":
      return crash(world, replica, until);
    case "power":
      return losePower(world, until);
    case "rate":
      return node.setRate(
        arg < 0.3 ? plan.rates.low : arg > 0.7 ? plan.rates.high : between(plan.rates, arg),
      );
    case "jump":
      return node.oscillator.jumpWall(jump(arg));
    case "cut":
      return cut(trouble, until, arg);
    case "loss":
    case "delay":
    case "duplicate":
    case "mute":
    case "stale":
    case "errors":
      // Half of them befall everyone.
      for (const each of arg < 0.5 ? [replica] : world.replicas)
        each.trouble[kind] = Math.max(each.trouble[kind], until);
      if (kind === "stale") replica.trouble.staleSince = arg % 0.5 < 0.25 ? scheduler.now : Infinity;
      return;
    case "slow":
      host.slowUntil = Math.max(host.slowUntil, until);
      return;
    case "freeze":
      host.frozenUntil = Math.max(host.frozenUntil, until);
      return;
    case "deposed":
      return world.store.depose(node.id, until);
    case "resign":
    case "proclaim":
    case "burst":
    case "throw":
    case "return":
    case "ignore":
    case "reopen":
      return strikeCandidate(world, kind, arg, replica, until);
    case "nap":
      return nap(world, replica, until, arg);
    case "wipe":
      return loseMemory(world, (memory) => memory.wipe(), arg);
    case "restore":
      return restore(world, until, arg);
    case "overrun":
      return overrun(world, arg);
    case "leave":
      return world.store.leave?.(node.id);
    case "forge":
      return world.store.forge?.(plan.ttlMs);
    case "will":
    case "evict":
    case "transfer":
      return passOn(world, fault, replica);
    case "step":
      return world.store.step?.(stepMs(plan.ttlMs, arg));
  }
}

/** Leadership is given away, by its leader or by others. */
function passOn(world: World, fault: Fault, replica: Replica): void {
  if (fault.kind === "will") executeWill(world, replica, fault.arg);
  else if (fault.kind === "evict") evictLeader(world, replica);
  else transferTo(world, fault);
}

/** From half a ttl back to two ttls ahead, and now and then an hour either way. */
function stepMs(ttlMs: number, arg: number): number {
  return arg < 0.1 ? HOUR_MS * (arg < 0.05 ? -1 : 1) : ttlMs * (2.5 * arg - 0.5);
}

type CandidateFault = Extract<
  Fault["kind"],
  "resign" | "proclaim" | "burst" | "throw" | "return" | "ignore" | "reopen"
>;

/** What users and their work do, rather than machines and stores. */
function strikeCandidate(
  world: World,
  kind: CandidateFault,
  arg: number,
  replica: Replica,
  until: number,
): void {
  const { node, candidate } = replica;
  const { plan, scheduler } = world;
  switch (kind) {
    case "resign":
      return node.turning ? candidate?.resign() : undefined;
    case "proclaim":
      return node.turning ? candidate?.proclaim(`value ${arg}`) : undefined;
    case "burst":
      return node.turning ? candidate?.burst() : undefined;
    case "throw":
    case "return":
      return candidate?.misbehaviour.order(kind);
    case "ignore":
      candidate?.misbehaviour.deafen(until);
      // Deafness alone is not noticed: something must tell it to stop.
      scheduler.at(scheduler.now + plan.ttlMs / 4, () => void (node.turning && replica.candidate?.resign()));
      return;
    case "reopen":
      return reopen(world, replica, until, arg);
  }
}

function losePower(world: World, until: number): void {
  world.losePower();
  for (const each of world.replicas) crash(world, each, until);
}

/** Requests, answers or both are lost. */
function cut(trouble: Replica["trouble"], until: number, arg: number): void {
  if (arg < 0.7) trouble.requestsCut = Math.max(trouble.requestsCut, until);
  if (arg > 0.3) trouble.answersCut = Math.max(trouble.answersCut, until);
}

function crash(world: World, replica: Replica, until: number): void {
  world.crash(replica);
  world.scheduler.at(until, () => world.start(replica));
}

const HOUR_MS = 3_600_000;

/** How many do not come back: what they had sent must not stay in the way of the others. */
const LEAVES = 0.3;

function reopen(world: World, replica: Replica, until: number, arg: number): void {
  const { candidate, node } = replica;
  const { process } = node;
  if (candidate === undefined || process === undefined || !candidate.open || !node.turning) return;
  const others = world.replicas.filter((each) => each !== replica && each.candidate?.open === true);
  const leaves = arg < LEAVES && others.length > 1;
  const again = (): void => {
    if (leaves) return;
    world.scheduler.at(Math.max(until, world.scheduler.now), () =>
      process.deliver(() => {
        if (replica.candidate === candidate) world.open(replica);
      }),
    );
  };
  candidate.close().then(again, (error: unknown) => {
    world.monitor.violate("after-close", `close() rejected: ${String(error)}`);
  });
}

function between({ low, high }: { low: number; high: number }, share: number): number {
  return low + (high - low) * share;
}

/** A second, a minute, an hour or a day, forwards or backwards. */
function jump(arg: number): number {
  const sizes = [1_000, 60_000, 3_600_000, 86_400_000];
  const size = sizes[Math.floor(arg * 8) % 4] ?? 1_000;
  return arg < 0.5 ? size : -size;
}
