/** A candidate whose turn has come looks once more before it stands aside: what it sees then counts. */
import { expect, it } from "vitest";
import { CandidateNode } from "../../src/backends/zookeeper/candidate-node.js";
import type { InQueue } from "../../src/backends/zookeeper/clear-the-way.js";
import type { NodeData, ZooKeeperConnection } from "../../src/backends/zookeeper/client.js";
import { layoutOf } from "../../src/backends/zookeeper/layouts.js";
import { Paths } from "../../src/backends/zookeeper/paths.js";
import { standAside } from "../../src/backends/zookeeper/stand-aside.js";

const latch = (sequence: number): string =>
  `_c_00000000-0000-0000-0000-00000000000${sequence}-latch-000000000${sequence}`;

/** Our node is the second of the election; these are the nodes that are there now. */
function queueOf(names: readonly string[]): { readonly queue: InQueue; readonly commits: number[] } {
  const paths = new Paths("");
  const parent = paths.election("jobs");
  const node = new CandidateNode({ election: "jobs", candidate: "c", parent, prefix: "" });
  const stat = { czxid: 2n, mzxid: 2n, version: 0, ephemeralOwner: 1n, numChildren: 0 };
  node.entered({ path: `${parent}/${latch(2)}`, stat });
  const commits: number[] = [];
  const connection: Pick<ZooKeeperConnection, "getChildren" | "getData" | "commit"> = {
    getChildren: async () => [...names],
    getData: async (): Promise<NodeData | null> => null,
    commit: async (changes) => {
      commits.push(changes.length);
      return undefined;
    },
  };
  const limits = { signal: new AbortController().signal, limitMs: 1_000 };
  const layout = layoutOf("curator-latch");
  return { queue: { connection: connection as ZooKeeperConnection, node, layout, paths, limits }, commits };
}

it("whose node is gone does not lead", async () => {
  const { queue, commits } = queueOf([latch(3)]);
  expect(await standAside(queue, latch(1), { vacancy: undefined })).toBe("changed");
  expect(commits).toEqual([]);
});

it("who is alone leads; who is not goes", async () => {
  const alone = queueOf([latch(2)]);
  expect(await standAside(alone.queue, latch(1), { vacancy: undefined })).toBe("leads");
  const first = queueOf([latch(2), latch(3)]);
  expect(await standAside(first.queue, latch(1), { vacancy: undefined })).toBe("left");
  expect([alone.commits, first.commits]).toEqual([[], [3]]);
});

it("whoever a leader has asked for by name leads, whichever of those ahead of it goes last", async () => {
  for (const last of [latch(0), latch(1)]) {
    const { queue, commits } = queueOf([latch(2), latch(3)]);
    queue.node.heirOf = new Set([latch(0), latch(1)]);
    expect([await standAside(queue, last, { vacancy: undefined }), commits]).toEqual(["leads", []]);
  }
});
