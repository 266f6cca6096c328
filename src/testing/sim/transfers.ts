/** Terms that are handed over to a named candidate. */
import type { Fault } from "./plan.js";
import type { World } from "./world.js";

/** The leader hands over to whoever campaigns on the fault's node, in any state, or to somebody unheard of. */
export function transferTo(world: World, { target, dur, arg }: Fault): void {
  const leader = world.monitor.leader()?.node;
  const from = world.replicas.find(({ node }) => node === leader);
  const to = world.replicas.find(({ node }) => node.id === target);
  if (from === undefined || from === to || !from.node.turning) return;
  // By its full id, or by the readable part, which here is the node's.
  const heir = arg < 0.7 ? to?.candidate?.name : undefined;
  from.candidate?.transfer(heir ?? target, dur);
}
