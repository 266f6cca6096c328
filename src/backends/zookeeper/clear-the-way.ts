/**
 * Handing over to a named candidate that stands further back in the queue; the
 * rules are those of ADR 060. The leader writes a note beside the queue. The heir
 * answers in it, which shows that it lives. Then those ahead of the heir leave the
 * queue and join it again. All that happens while the leader's node is there: no
 * one leads in between, and a note that comes late moves nobody.
 */
import { isHeir } from "../../kit/heir.js";
import type { Stop } from "../../kit/stop.js";
import { limited, onAbort } from "../../kit/wait.js";
import type { Heir } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import type { CandidateNode } from "./candidate-node.js";
import type { CallLimits, Change, NodeData, ZooKeeperConnection } from "./client.js";
import { ERRNO, isErrno } from "./client/errors.js";
import { candidates, type Layout } from "./layouts.js";
import { leaderFromNode } from "./node-data.js";
import { makeParents } from "./parents.js";
import { childName, parentOf, type Paths } from "./paths.js";
import type { SharedSession } from "./shared-session.js";

/** Ahead of an heir. */
const MOST_AHEAD = 100;
const LONGEST_NOTE = 1_000;

export interface InQueue {
  readonly connection: ZooKeeperConnection;
  readonly node: CandidateNode;
  readonly layout: Layout;
  readonly paths: Paths;
  readonly limits: CallLimits;
}

/** What the leader asks for, and whether the heir has answered. Names of nodes are never used again. */
interface Note {
  readonly state: "asked" | "ready";
  readonly leader: string;
  readonly heir: string;
}

export interface HandOver extends Pick<InQueue, "node" | "layout" | "paths"> {
  readonly clock: Clock;
  readonly shared: SharedSession;
}

/**
 * Brings the heir to the front of those that wait. Never throws: a resignation without an heir is one all the same.
 * `"kept"`: the heir finds the note when its turn has come.
 */
export async function clearTheWay(
  parts: HandOver,
  heir: Heir,
  { signal, limitMs }: CallLimits,
): Promise<"kept" | "done"> {
  const boundMs = Math.min(heir.forMs, limitMs / 2);
  const work = async (stop: Stop): Promise<"kept" | "done"> => {
    const limits = { signal: stop, limitMs: boundMs };
    const connection = await parts.shared.connected(limits);
    return bringForward({ ...parts, connection, limits }, heir.candidate);
  };
  return limited(parts.clock, boundMs, signal, "handing over on ZooKeeper", work).catch(
    () => "done" as const,
  );
}

/** Takes the note away, unless the leader's node is gone: then it may be that of the next leader. */
export async function removeNote({ shared, paths, node }: HandOver, limits: CallLimits): Promise<void> {
  if (node.path === undefined) return;
  await remove(await shared.connected(limits), paths.heir(node.election), node.path, limits);
}

async function remove(
  connection: ZooKeeperConnection,
  note: string,
  leader: string,
  limits: CallLimits,
): Promise<void> {
  const changes: Change[] = [
    { kind: "check", path: leader },
    { kind: "remove", path: note },
  ];
  await connection.commit(changes, limits);
}

async function bringForward(queue: InQueue, candidate: string): Promise<"kept" | "done"> {
  const { connection, node, limits } = queue;
  await connection.check([node.parent], limits); // a transaction brings the server up to date
  const all = await namesOf(queue);
  const leader = all[0];
  const waiting = all.slice(1, MOST_AHEAD + 2);
  if (leader === undefined || `${node.parent}/${leader}` !== node.path || waiting.length < 2) return "done";
  const data = await Promise.all(waiting.map((name) => connection.getData(`${node.parent}/${name}`, limits)));
  const heir = waiting.find((name, i) => {
    const found = data[i];
    return found && isHeir(leaderFromNode(name, found.data, found.stat.czxid).candidate, candidate);
  });
  if (heir === undefined) return "done";
  const next = heir === waiting[0];
  // Also to one whose turn comes next in any case: it may prefer others to lead.
  await announce(queue, { state: next ? "ready" : "asked", leader, heir });
  if (next) return "kept";
  await untilNext(queue, leader, heir);
  return "done";
}

/** A note of an earlier leader is replaced. */
async function announce({ connection, node, paths, layout, limits }: InQueue, note: Note): Promise<void> {
  const path = paths.heir(node.election);
  const changes: Change[] = [
    { kind: "check", path: `${node.parent}/${note.leader}` },
    { kind: "check", path: `${node.parent}/${note.heir}` },
    { kind: "create", path, data: write(note) },
  ];
  for (let attempt = 0; attempt < 3; attempt++) {
    const failed = await connection.commit(changes, limits);
    if (failed === undefined) return;
    if (failed.errno === ERRNO.nodeExists)
      await remove(connection, path, `${node.parent}/${note.leader}`, limits);
    else if (failed.errno === ERRNO.noNode && failed.index === 2)
      await makeParents(connection, paths, parentOf(path), layout.containers, limits);
    else break;
  }
  throw new Error("the heir was not announced");
}

/** Until nobody stands between the two any more. A heir that is gone is not waited for. */
async function untilNext(queue: InQueue, leader: string, heir: string): Promise<void> {
  for (;;) {
    const change = new OneChange();
    const all = await namesOf(queue, change.happened);
    const at = all.indexOf(heir);
    if (at <= 1 || all[0] !== leader) return;
    await change.next(queue.limits.signal);
  }
}

/**
 * Called by a waiting candidate when there is a note. The heir answers; a candidate
 * ahead of an heir that has answered gives its node up (`"left"`), to join again.
 */
export async function heed(queue: InQueue, found: NodeData): Promise<"left" | "stays"> {
  const { connection, node, paths, limits } = queue;
  const note = noteIn(found.data);
  if (note === undefined || node.path === undefined) return "stays";
  const leader: Change = { kind: "check", path: `${node.parent}/${note.leader}` };
  const all = await namesOf(queue);
  const [own, heir] = [all.indexOf(childName(node.path)), all.indexOf(note.heir)];
  if (all[0] !== note.leader || heir < own) return "stays";
  if (heir === own) {
    const known = node.heirOf?.has(note.leader) === true ? node.heirOf : [];
    // The last that we see of them may be any of these: the leader may go before we look again.
    node.heirOf = new Set([...known, ...all.slice(0, own)]);
    if (note.state === "ready") return "stays";
    const { version } = found.stat;
    const data = write({ ...note, state: "ready" });
    await connection.commit(
      [leader, { kind: "write", path: paths.heir(node.election), data, version }],
      limits,
    );
    return "stays";
  }
  if (note.state === "asked") return "stays";
  const behind: Change = { kind: "check", path: `${node.parent}/${note.heir}` };
  const failed = await connection.commit([leader, behind, { kind: "remove", path: node.path }], limits);
  return failed === undefined ? "left" : "stays";
}

/** The note about the heir, read when it has changed: one request when a candidate begins to wait, none at its turn. */
export class NoteWatch {
  readonly connection: ZooKeeperConnection;
  readonly #path: string;
  readonly #wake: () => void;
  #changed = true;

  constructor(connection: ZooKeeperConnection, path: string, wake: () => void) {
    this.connection = connection;
    this.#path = path;
    this.#wake = wake;
  }

  /** The note, if it is a new one. */
  async look(limits: CallLimits): Promise<NodeData | null> {
    if (!this.#changed) return null;
    this.#changed = false;
    const changed = (): void => {
      this.#changed = true;
      this.#wake();
    };
    try {
      const stat = await this.connection.exists(this.#path, limits, changed);
      return stat === null ? null : await this.connection.getData(this.#path, limits);
    } catch (error) {
      if (isErrno(error, ERRNO.noAuth)) return null; // then it is served in its turn
      throw error;
    }
  }
}

/** The candidates' nodes, first come first. */
export async function namesOf(
  { connection, node, layout, limits }: InQueue,
  wake?: () => void,
): Promise<readonly string[]> {
  const children = (await connection.getChildren(node.parent, limits, wake)) ?? [];
  return candidates(layout, node.parent, children).map(({ name }) => name);
}

function write({ state, leader, heir }: Note): string {
  return `${state} ${leader} ${heir}`;
}

export function noteIn(text: string): Note | undefined {
  if (text.length > LONGEST_NOTE) return undefined;
  const [state, leader, heir, ...rest] = text.split(" ");
  if ((state !== "asked" && state !== "ready") || !leader || !heir || rest.length > 0) return undefined;
  return { state, leader, heir };
}

/** One change, waited for once. */
class OneChange {
  #happened = false;
  #wake: (() => void) | undefined;

  readonly happened = (): void => {
    this.#happened = true;
    this.#wake?.();
  };

  next(stop: Stop): Promise<void> {
    return new Promise((resolve, reject) => {
      let unlink = (): void => {};
      const done = (): void => {
        unlink();
        if (stop.aborted) reject(stop.reason);
        else resolve();
      };
      if (this.#happened) return done();
      this.#wake = done;
      unlink = onAbort(stop, done);
    });
  }
}
