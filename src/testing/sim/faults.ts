/** What each kind of fault does to the world. */
import { nap, overrun, restore } from "./etcd-faults.js";
import type { Fault } from "./plan.js";
import { Random } from "./random.js";
import type { Seat, World } from "./world.js";

export function applyFault(world: World, fault: Fault, index: number): void {
  const { target } = fault;
  if (target === "next" || target === "stand" || target === "claim" || target === "run")
    world.ambush(target, (seat) => hit(world, fault, seat));
  else hit(world, fault, aim(world, fault, index));
}

function hit(world: World, fault: Fault, seat: Seat): void {
  const { now } = world.scheduler;
  if (now >= world.plan.healAtMs) return;
  const until = Math.min(now + fault.dur, world.plan.healAtMs);
  world.monitor.note(`fault ${fault.kind} on ${seat.node.id} until ${(until / 1000).toFixed(3)} s`);
  strike(world, fault, seat, until);
}

/** Most faults aim at whoever leads. */
function aim(world: World, fault: Fault, index: number): Seat {
  const { seats, plan } = world;
  const leader = fault.target === "leader" ? world.monitor.leader()?.node.id : fault.target;
  const named = seats.find((seat) => seat.node.id === leader);
  if (named !== undefined) return named;
  const first = seats[0];
  if (first === undefined) throw new Error("a plan needs at least one node");
  return new Random(plan.seed, `aim/${index}`).pick([first, ...seats.slice(1)]);
}

function strike(world: World, { kind, arg }: Fault, seat: Seat, until: number): void {
  const { node, trouble, contestant } = seat;
  const { host, plan, scheduler } = world;
  switch (kind) {
    case "pause":
      return node.hinder("paused", until);
    case "stall":
      return node.hinder("stalled", until);
    case "suspend":
      return node.hinder("suspended", until);
    case "crash":
      return crash(world, seat, until);
    case "power":
      world.losePower();
      for (const each of world.seats) crash(world, each, until);
      return;
    case "rate":
      return node.setRate(
        arg < 0.3 ? plan.rates.low : arg > 0.7 ? plan.rates.high : between(plan.rates, arg),
      );
    case "jump":
      return node.oscillator.jumpWall(jump(arg));
    case "cut":
      if (arg < 0.7) trouble.requestsCut = Math.max(trouble.requestsCut, until);
      if (arg > 0.3) trouble.answersCut = Math.max(trouble.answersCut, until);
      return;
    case "loss":
    case "delay":
    case "duplicate":
    case "mute":
    case "stale":
    case "errors":
      // Half of them befall everyone.
      for (const each of arg < 0.5 ? [seat] : world.seats)
        each.trouble[kind] = Math.max(each.trouble[kind], until);
      if (kind === "stale") seat.trouble.staleSince = arg % 0.5 < 0.25 ? scheduler.now : Infinity;
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
      return node.turning ? contestant?.resign() : undefined;
    case "proclaim":
      return node.turning ? contestant?.proclaim(`value ${arg}`) : undefined;
    case "burst":
      return node.turning ? contestant?.burst() : undefined;
    case "throw":
    case "return":
      return contestant?.temper.order(kind);
    case "ignore":
      contestant?.temper.deafen(until);
      // Deafness alone is not noticed: something must tell it to stop.
      scheduler.at(scheduler.now + plan.ttlMs / 4, () => void (node.turning && seat.contestant?.resign()));
      return;
    case "reopen":
      return reopen(world, seat, until, arg);
    case "nap":
      return nap(world, seat, until, arg);
    case "wipe":
      return world.loseMemory((memory) => memory.wipe(), arg);
    case "restore":
      return restore(world, until, arg);
    case "overrun":
      return overrun(world, arg);
    case "forge":
      return world.store.forge?.(plan.ttlMs);
  }
}

function crash(world: World, seat: Seat, until: number): void {
  world.crash(seat);
  world.scheduler.at(until, () => world.start(seat));
}

/** How many do not come back: what they had sent must not stay in the way of the others. */
const LEAVES = 0.3;

function reopen(world: World, seat: Seat, until: number, arg: number): void {
  const { contestant, node } = seat;
  const { process } = node;
  if (contestant === undefined || process === undefined || !contestant.open || !node.turning) return;
  const others = world.seats.filter((each) => each !== seat && each.contestant?.open === true);
  const leaves = arg < LEAVES && others.length > 1;
  const again = (): void => {
    if (leaves) return;
    world.scheduler.at(Math.max(until, world.scheduler.now), () =>
      process.deliver(() => {
        if (seat.contestant === contestant) world.open(seat);
      }),
    );
  };
  contestant.close().then(again, (error: unknown) => {
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
