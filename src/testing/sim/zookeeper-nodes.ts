/** Nodes of the modelled ZooKeeper, by their paths. */
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
