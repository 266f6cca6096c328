/** Nodes of the modelled ZooKeeper, by their paths. */
import type { Change, Stat } from "../../backends/zookeeper/client.js";
import { ERRNO } from "../../backends/zookeeper/client/errors.js";

export interface ZNode {
  readonly data: string;
  readonly czxid: bigint;
  readonly mzxid: bigint;
  readonly version: number;
  readonly owner: bigint;
  /** Children that were ever created. */
  readonly sequence: number;
  /** Removed by the ensemble some time after its last child. */
  readonly container: boolean;
}

export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

export function childrenOf(nodes: ReadonlyMap<string, ZNode>, path: string): string[] {
  const prefix = path === "/" ? "/" : `${path}/`;
  const found: string[] = [];
  for (const other of nodes.keys()) {
    if (other.startsWith(prefix) && !other.slice(prefix.length).includes("/"))
      found.push(other.slice(prefix.length));
  }
  return found;
}

export function statOf(nodes: ReadonlyMap<string, ZNode>, path: string, node: ZNode): Stat {
  const { czxid, mzxid, version, owner } = node;
  return { czxid, mzxid, version, ephemeralOwner: owner, numChildren: childrenOf(nodes, path).length };
}

/** Why this part of a transaction is refused; `undefined`: it is not. */
export function errnoOf(nodes: ReadonlyMap<string, ZNode>, change: Change): number | undefined {
  const node = nodes.get(change.path);
  if (change.kind === "create") {
    if (node !== undefined) return ERRNO.nodeExists;
    return nodes.has(parentOf(change.path)) ? undefined : ERRNO.noNode;
  }
  if (node === undefined) return ERRNO.noNode;
  return change.kind === "write" && change.version !== node.version ? ERRNO.badVersion : undefined;
}
