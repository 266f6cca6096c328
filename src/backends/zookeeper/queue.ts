/**
 * Joining an election and waiting for one's turn. Candidates follow each other by
 * the sequence number of their nodes. A server may show a candidate that is gone
 * already, but hides none that is before us: those were there when our own node
 * was created. So whoever is first in a list is first.
 */
import { ConclaveError } from "../../kit/errors.js";
import { throwIfStopped } from "../../kit/wait.js";
import type { Clock } from "../../seam/clock.js";
import type { CandidateNode } from "./candidate-node.js";
import { heed, NoteWatch } from "./clear-the-way.js";
import type { CallLimits, Created, ZooKeeperConnection } from "./client.js";
import { ERRNO, isErrno, isRefusal } from "./client/errors.js";
import { candidates, type Layout, sequenceOf } from "./layouts.js";
import { encodeNode } from "./node-data.js";
import { makeParents } from "./parents.js";
import { childName, type Paths } from "./paths.js";
import type { SharedSession } from "./shared-session.js";
import { standAside, type Stance } from "./stand-aside.js";

export interface QueueRequest {
  readonly clock: Clock;
  readonly shared: SharedSession;
  readonly node: CandidateNode;
  readonly layout: Layout;
  readonly paths: Paths;
  readonly value: string;
  readonly wait: boolean;
  readonly limits: CallLimits;
  /** How long this candidate leaves a vacancy to others. */
  readonly standBackMs: () => number;
  /** The same for all nodes of a campaign. */
  readonly stance: Stance;
}

/** Leads; or, without waiting, does not; or has given its node up and must join again. */
export type Outcome = boolean | "left";

/** Times that a parent may vanish between two requests: the server removes empty containers once a minute. */
const MOST_ATTEMPTS = 5;

export async function leadQueue(request: QueueRequest): Promise<Outcome> {
  const { shared, node, limits } = request;
  if (!request.wait && (await isTaken(request))) return false;
  await join(request);
  const outcome = await untilFirst(request);
  if (outcome !== true) return outcome;
  if (node.lost !== undefined) throw node.lost;
  if (!shared.isFresh) await shared.confirm(node);
  // The term begins on an extension that counts for the session; the node itself is looked at meanwhile.
  else if (request.wait) shared.renew().catch(() => {});
  throwIfStopped(limits.signal);
  return true;
}

/** Without waiting there is no place in the queue to take. */
async function isTaken({ shared, node, layout, limits }: QueueRequest): Promise<boolean> {
  const connection = await shared.connected(limits);
  const children = (await connection.getChildren(node.parent, limits)) ?? [];
  const [first] = candidates(layout, node.parent, children);
  if (first === undefined) return false;
  const leader = await connection.getData(`${node.parent}/${first.name}`, limits);
  if (leader !== null) node.met(leader.stat.czxid);
  return leader !== null;
}

/** Creates our node, and its parents where they are missing. */
async function join(request: QueueRequest): Promise<void> {
  const { clock, shared, node, layout, paths, limits } = request;
  const connection = await shared.connected(limits);
  for (let attempt = 1; ; attempt++) {
    const sentAt = clock.now();
    try {
      const created = await create(request, connection);
      node.entered(created);
      shared.wrote(connection, sentAt);
      return assertOurs(request, created);
    } catch (error) {
      if (!isErrno(error, ERRNO.noNode) || attempt === MOST_ATTEMPTS) throw error;
      await makeParents(connection, paths, node.parent, layout.containers, limits);
    }
  }
}

async function create(
  { node, value, limits }: QueueRequest,
  connection: ZooKeeperConnection,
): Promise<Created> {
  node.sent = true;
  try {
    const path = `${node.parent}/${node.prefix}`;
    return await connection.create(path, encodeNode(node.candidate, value), "ephemeral-sequential", limits);
  } catch (error) {
    if (isRefusal(error)) node.sent = false; // certainly not created
    throw error;
  }
}

/** A node of another session would outlive ours. */
function assertOurs({ shared, node, layout }: QueueRequest, { path, stat }: Created): void {
  sequenceOf(layout, node.parent, childName(path));
  if (stat.ephemeralOwner === shared.id) return;
  throw new ConclaveError("unavailable", `ZooKeeper created ${JSON.stringify(path)} for another session`);
}

/** Waits until nobody is before us; `false`: somebody is, and we do not wait. */
async function untilFirst(request: QueueRequest): Promise<Outcome> {
  const { shared, node, layout, paths, limits } = request;
  let notes: NoteWatch | undefined;
  let last: string | undefined;
  for (;;) {
    const connection = await shared.connected(limits);
    const queue = { connection, node, layout, paths, limits };
    try {
      const predecessor = await predecessorOf(request, connection);
      if (predecessor === undefined) {
        if (last === undefined || request.standBackMs() <= 0) return true;
        const outcome = await standAside(queue, last, request.stance);
        if (outcome === "changed") continue;
        return outcome === "left" ? "left" : true;
      }
      last = predecessor;
      if (notes?.connection !== connection)
        notes = new NoteWatch(connection, paths.heir(node.election), node.wake);
      const [found, note] = await Promise.all([
        connection.getData(`${node.parent}/${predecessor}`, limits, node.wake),
        request.wait ? notes.look(limits) : null,
      ]);
      if (note !== null && (await heed(queue, note)) === "left") return "left";
      if (found === null) continue;
      node.met(found.stat.czxid);
    } catch (error) {
      // Our node outlives the connection: only the look has to be repeated, on the next one.
      if (!connection.closed || limits.signal.aborted || shared.ended) throw error;
      continue;
    }
    if (!request.wait) return false;
    await untilWoken(request);
  }
}

/** Woken by a change of the predecessor, a new connection, or after a while in any case. */
async function untilWoken({ clock, shared, node, limits }: QueueRequest): Promise<void> {
  const timer = clock.after(shared.ttlMs, node.wake);
  try {
    await node.untilWoken(limits.signal);
  } finally {
    timer.cancel();
  }
}

/** Name of the candidate just before us; `undefined`: we are first. */
async function predecessorOf(
  { node, layout, limits }: QueueRequest,
  connection: ZooKeeperConnection,
): Promise<string | undefined> {
  const children = await connection.getChildren(node.parent, limits);
  const all = candidates(layout, node.parent, children ?? []);
  const own = all.findIndex(({ name }) => `${node.parent}/${name}` === node.path);
  if (own < 0)
    throw new ConclaveError(
      "unavailable",
      `our node ${JSON.stringify(node.path)} is not there; campaigning anew`,
    );
  node.next = own === 1;
  return all[own - 1]?.name;
}
