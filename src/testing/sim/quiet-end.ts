/** What must be true at the end of a plan, after its last fault. */
import type { Monitor } from "./monitor.js";
import { wallStartOf } from "./replica.js";
import type { World } from "./world.js";

/** Checks, at the end, that somebody leads each election, that observers know it, and that all due jobs have run. */
export function expectQuietEnd(world: World, monitors: readonly Monitor[]): void {
  const { plan, scheduler, monitor, cron } = world;
  // Consul lets a session end after two ttls, and keeps its locks closed for another.
  const ttls = plan.store === "locks" ? 5 : 3;
  // Whoever leaves a vacancy to others does so for a ttl at most.
  const patience = ((plan.standBackMs === undefined ? ttls : ttls + 1) * plan.ttlMs) / plan.rates.low;
  const someoneLed = (since: number, what: string) => (): void => {
    const vacant = monitors.find(({ lastHeld }) => lastHeld < since);
    const where = vacant === monitor ? "" : " in one of the other elections";
    vacant?.violate("liveness", `nobody led for too long ${what}${where}`);
  };
  // A plan that was cut short has no quiet end in which someone could be expected to lead.
  if (plan.healAtMs + patience > plan.horizonMs) return;
  scheduler.quietly(plan.healAtMs + patience, someoneLed(plan.healAtMs, "after the last fault"));
  scheduler.quietly(plan.horizonMs, someoneLed(plan.horizonMs - patience, "before the end"));
  scheduler.quietly(plan.horizonMs, () => checkObservers(world));
  if (cron) scheduler.quietly(plan.horizonMs, () => cron.checkRuns(wallStartOf(plan) + scheduler.now));
}

/** Whoever follows has had the time to see who leads. Only of a store whose reads are never stale. */
function checkObservers({ monitor, plan, scheduler, replicas }: World): void {
  const leader = monitor.leader();
  if ((plan.store !== "queue" && plan.store !== "locks") || leader === undefined) return;
  const since = scheduler.now - 2 * plan.ttlMs;
  for (const { candidate, node } of replicas) {
    if (
      candidate?.sees === undefined ||
      !candidate.open ||
      node.turningSince > since ||
      leader.openedAt > since
    )
      continue;
    if (candidate.sees !== leader.token)
      monitor.violate(
        "observer-order",
        `${candidate.owner} sees ${candidate.sees ?? "nobody"} although ${leader.token} leads`,
      );
  }
}
