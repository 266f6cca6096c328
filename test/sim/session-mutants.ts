/** Rules of sessions that are kept through servers that may be cut off (ZooKeeper), each broken in turn. */
import type { Rule } from "../../src/testing/sim/index.js";
import type { Mutant } from "./mutants.js";

const SHARED_SESSION = "src/backends/zookeeper/shared-session.js";
const QUEUE = "src/backends/zookeeper/queue.js";
const NODE = "src/backends/zookeeper/candidate-node.js";
const ORPHANS = "src/backends/zookeeper/orphaned-nodes.js";
const HOLD = "src/backends/zookeeper/hold.js";

/** What counts is that two leaders are seen, not that a deadline was reckoned wrongly. */
const SEEN: readonly Rule[] = ["late-stop", "stop-order", "false-loss"];

export const SESSION_MUTANTS: readonly Mutant[] = [
  {
    name: "a ping is a renewal",
    rule: "a server that is cut off answers pings: only a write proves that a session lives",
    stores: ["sessions"],
    ignore: SEEN,
    edits: [
      {
        file: SHARED_SESSION,
        find: "await checkNodes(connection, nodes, { limits, missing: (node, why) => this.#missing(node, why) });",
        replace: "await connection.ping(limits);",
      },
    ],
  },
  {
    name: "a session counts from the last write",
    rule: "a server tells its leader of a session only every half tick: count from a question before that",
    stores: ["sessions"],
    ignore: SEEN,
    edits: [
      {
        file: SHARED_SESSION,
        find: "const proven = this.#touches.provenBy(connection, sentAt);",
        replace: "const proven = readClocks(this.clock);",
      },
    ],
  },
  {
    name: "any extension is young enough",
    rule: "a grant counts from what the ensemble has confirmed",
    stores: ["sessions"],
    ignore: SEEN,
    edits: [
      {
        file: HOLD,
        find: "this.asked = shared.extension.asked;",
        replace: "this.asked = shared.now;",
      },
      {
        file: SHARED_SESSION,
        find: "get isFresh() {",
        replace: "get now() { return readClocks(this.clock); }\n    get isFresh() {",
      },
    ],
  },
  {
    name: "the token is the sequence number",
    rule: "sequence numbers start again with a new parent: the token is the transaction",
    stores: ["sessions"],
    edits: [
      {
        file: NODE,
        find: "this.token = stat.czxid;",
        replace: "this.token = BigInt(path.slice(-10)) + 1n;",
      },
    ],
  },
  {
    name: "the second in the queue leads too",
    rule: "only the first leads",
    stores: ["sessions"],
    edits: [{ file: QUEUE, find: "return all[own - 1]?.name;", replace: "return all[own - 2]?.name;" }],
  },
  {
    name: "nodes that nobody owns stay",
    rule: "what a campaign leaves behind is removed",
    stores: ["sessions"],
    edits: [{ file: ORPHANS, find: "if (this.#closed || !node.sent)", replace: "if (true)" }],
  },
  {
    name: "a parent that was removed is not created again",
    rule: "the ensemble removes empty containers",
    stores: ["sessions"],
    edits: [
      {
        file: QUEUE,
        find: "await makeParents(connection, paths, node.parent, layout.containers, limits);",
        replace:
          "if (attempt > 1) await makeParents(connection, paths, node.parent, layout.containers, limits); else throw error;",
      },
    ],
  },
];
