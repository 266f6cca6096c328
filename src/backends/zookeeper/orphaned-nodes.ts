/**
 * Nodes that nobody owns any more and that may still be in the store, or may yet
 * arrive there: of terms that ran out, of deletes and creates without an answer.
 * They are looked for and removed as long as their session lives. One that stayed
 * would win the election some day, and nobody would lead.
 */
import type { Clock, Timer } from "../../seam/clock.js";
import type { CallLimits, ZooKeeperConnection } from "./client.js";
import type { CandidateNode } from "./candidate-node.js";

/** A create without an answer may arrive this much later. */
const LATE_CREATE_MS = 30_000;

interface Orphan {
  /** Not removed before this instant: until then its leader may have counted on it. */
  readonly from: number;
  /** Its node may still arrive until this instant. */
  readonly until: number;
}

export interface OrphanedNodesOptions {
  readonly clock: Clock;
  /** Of every request. */
  readonly limits: CallLimits;
  connected(): Promise<ZooKeeperConnection>;
}

export class OrphanedNodes {
  readonly #options: OrphanedNodesOptions;
  readonly #orphans = new Map<CandidateNode, Orphan>();
  #sweeping = false;
  /** Asked for while another was under way. */
  #sweepAgain = false;
  #closed = false;
  #timer: Timer | undefined;
  #timerAt = Infinity;

  constructor(options: OrphanedNodesOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#orphans.size;
  }

  /** Whether some of them may not be removed yet. */
  get waiting(): boolean {
    return this.#timerAt < Infinity;
  }

  /** Its node is to be removed, but not before `from`. */
  add(node: CandidateNode, from = -Infinity): void {
    if (this.#closed || !node.sent) return;
    const until = node.path === undefined ? this.#options.clock.now() + LATE_CREATE_MS : 0;
    this.#orphans.set(node, { from, until });
    if (from > this.#options.clock.now()) this.#wakeAt(from);
    else void this.sweep();
  }

  has(node: CandidateNode): boolean {
    return this.#orphans.has(node);
  }

  delete(node: CandidateNode): void {
    this.#orphans.delete(node);
  }

  close(): void {
    this.#closed = true;
    this.#cancel();
  }

  async sweep(): Promise<void> {
    this.#sweepAgain = this.#sweeping;
    if (this.#sweeping || this.#closed || this.#orphans.size === 0) return;
    this.#sweeping = true;
    try {
      const { clock, limits } = this.#options;
      const connection = await this.#options.connected();
      const now = clock.now();
      const children = listedOnce(connection, limits);
      for (const [node, { from, until }] of [...this.#orphans]) {
        if (from > now) continue;
        const settled = await removeNode(connection, node, limits, children);
        if (settled || now >= until) this.#orphans.delete(node);
      }
    } catch {
      // with the next renewal, or the next connection
    } finally {
      this.#sweeping = false;
    }
    if (this.#sweepAgain) await this.sweep();
  }

  /** One timer for all: the first that may be removed, then the next. */
  #wakeAt(at: number): void {
    if (at >= this.#timerAt) return;
    const { clock } = this.#options;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = clock.after(Math.max(0, at - clock.now()), () => this.#due());
  }

  #due(): void {
    const now = this.#options.clock.now();
    this.#cancel();
    let next = Infinity;
    for (const { from } of this.#orphans.values()) if (from > now) next = Math.min(next, from);
    if (next < Infinity) this.#wakeAt(next);
    void this.sweep();
  }

  #cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAt = Infinity;
  }
}

/** Children of a node: one request, however many candidates of one election are looked for. */
type ListChildren = (parent: string) => Promise<readonly string[]>;

function listedOnce(connection: ZooKeeperConnection, limits: CallLimits): ListChildren {
  const lists = new Map<string, readonly string[]>();
  return async (parent) => {
    const known = lists.get(parent);
    if (known !== undefined) return known;
    const children = (await connection.getChildren(parent, limits)) ?? [];
    lists.set(parent, children);
    return children;
  };
}

/**
 * Removes a candidate's node. Its name is its own and is never used again, so a
 * late delete harms nobody. If the name is not known it is looked for by its
 * begin. `false`: it was not found, and may still arrive.
 */
export async function removeNode(
  connection: ZooKeeperConnection,
  node: CandidateNode,
  limits: CallLimits,
  listChildren: ListChildren = listedOnce(connection, limits),
): Promise<boolean> {
  if (node.path !== undefined) {
    await connection.remove(node.path, limits);
    return true;
  }
  const children = await listChildren(node.parent);
  const found = children.filter((name) => name.startsWith(node.prefix));
  for (const name of found) await connection.remove(`${node.parent}/${name}`, limits);
  return found.length > 0;
}
