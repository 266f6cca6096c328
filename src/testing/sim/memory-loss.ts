/** A store that loses its memory, and the operator who deals with it. */
import type { StoreMemory } from "./store-parts.js";
import type { World } from "./world.js";

/** The store loses its memory. A while later an operator deals with it, and again when all is well. */
export function loseMemory(world: World, lose: (memory: StoreMemory) => void, arg: number): void {
  const { memory } = world.store;
  if (memory === undefined) return;
  lose(memory);
  world.monitor.note("the store has lost its memory");
  for (const monitor of world.monitors) monitor.lostMemory();
  const { now } = world.scheduler;
  const { ttlMs, healAtMs } = world.plan;
  for (const time of [now + 2 * ttlMs, healAtMs + ttlMs / 2])
    world.scheduler.at(Math.max(now, time), () => operate(world, memory, arg < 0.5));
}

/** Raises the tokens above all there were, or tells all candidates to accept that they begin anew. */
function operate(world: World, memory: StoreMemory, raise: boolean): void {
  world.monitor.note(raise ? "an operator raises the tokens" : "an operator accepts lower tokens");
  if (raise) {
    memory.raise();
    // On files that is to begin anew: whoever led is forgotten.
    for (const monitor of world.monitors) monitor.lostMemory();
    return;
  }
  for (const { candidate, sides, node } of world.replicas) {
    for (const each of [candidate, ...sides]) {
      if (each === undefined) continue;
      each.process.deliver(() => {
        each.acceptRegression();
        if (node.process !== undefined) memory.forgive(node.process, each.election);
      });
    }
  }
}
