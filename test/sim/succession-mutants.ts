/** Rules by which leadership is passed on, in queues and by rosters, each broken in turn. */
import type { Mutant } from "./mutants.js";

const ETCD = "src/backends/etcd/clear-the-way.js";
const ETCD_ASIDE = "src/backends/etcd/stand-aside.js";
const ZOOKEEPER = "src/backends/zookeeper/clear-the-way.js";
const ZOOKEEPER_ASIDE = "src/backends/zookeeper/stand-aside.js";
const STANDING = "src/election/standing.js";
const ROSTER = "src/control/roster.js";

const SHARED: Mutant["stores"] = ["queue", "sessions", "locks"];

export const SUCCESSION_MUTANTS: readonly Mutant[] = [
  {
    name: "what nobody follows any more is removed at once",
    rule: "a term that has left its session may be held until its last extension is over",
    stores: SHARED,
    ignore: ["heir-ignored"],
    edits: [
      {
        file: "src/session/unfollowed-holds.js",
        find: "Math.max(candidate.handedOut, this.#extendedAt)",
        replace: "candidate.handedOut",
      },
    ],
  },
  {
    name: "an heir is ignored: records",
    rule: "whom the leader names is next, if it lives",
    stores: ["observer", "timed", "file"],
    edits: [{ file: "src/record/hold.js", find: "...(heir !== undefined && { heir })", replace: "" }],
  },
  {
    name: "an heir is ignored: etcd",
    rule: "those ahead of an heir give way to it",
    stores: ["queue"],
    edits: [
      {
        file: ETCD,
        find: "const known = candidateKey.heirOf?.has(note.leader) === true ? candidateKey.heirOf : [];",
        replace: 'return "stays";',
      },
    ],
  },
  {
    name: "an heir is ignored: ZooKeeper",
    rule: "those ahead of an heir give way to it",
    stores: ["sessions"],
    edits: [
      {
        file: ZOOKEEPER,
        find: "const known = node.heirOf?.has(note.leader) === true ? node.heirOf : [];",
        replace: 'return "stays";',
      },
    ],
  },
  {
    name: "an heir lets others go first: etcd",
    rule: "who was asked for by name does not stand aside",
    stores: ["queue"],
    edits: [
      {
        file: ETCD_ASIDE,
        find: "candidateKey.heirOf?.has(predecessor.createRevision) === true",
        replace: "false",
      },
    ],
  },
  {
    name: "an heir lets others go first: ZooKeeper",
    rule: "who was asked for by name does not stand aside",
    stores: ["sessions"],
    edits: [
      {
        file: ZOOKEEPER_ASIDE,
        find: "node.heirOf?.has(predecessor) === true || (await isNamed(queue, predecessor))",
        replace: "false",
      },
    ],
  },
  {
    name: "an heir takes the keys of those ahead away: etcd",
    rule: "a queue is put in order by those who stand in it, and only while the leader's key is there",
    stores: ["queue"],
    edits: [
      {
        file: ETCD,
        find: '({ kind: "touch", key: other.key })',
        replace: '({ kind: "delete", key: other.key })',
      },
      {
        file: ETCD,
        find: "const when = [...guards, ...others.map((other) => created(other))];",
        replace: "const when = [];",
      },
    ],
  },
  {
    name: "an heir takes the nodes of those ahead away: ZooKeeper",
    rule: "a queue is put in order by those who stand in it, and only while the leader's node is there",
    stores: ["sessions"],
    edits: [
      {
        file: ZOOKEEPER,
        find: 'await connection.commit([leader, { kind: "write", path: paths.heir(node.election), data, version }], limits);',
        replace:
          "for (const name of all.slice(1, own)) await connection.remove(`${node.parent}/${name}`, limits);",
      },
    ],
  },
  {
    name: "the way is cleared while the leader still leads",
    rule: "a term is over before anything of it is given away",
    edits: [
      {
        file: "src/law/tenure.js",
        find: "this.#finish({ reason, detail, drained });\n            await this.#release();",
        replace:
          "await releaseHold(this.#hold, this.context, 2, this.heir);\n            this.#finish({ reason, detail, drained });\n            this.#report();",
      },
    ],
  },
  {
    name: "who stands aside does so at every turn: etcd",
    rule: "each stands aside once at a vacancy",
    stores: ["queue"],
    edits: [{ file: ETCD_ASIDE, find: "if (present === stance.vacancy)", replace: "if (false)" }],
  },
  {
    name: "who stands aside does so at every turn: ZooKeeper",
    rule: "each stands aside once at a vacancy",
    stores: ["sessions"],
    edits: [{ file: ZOOKEEPER_ASIDE, find: "if (present === stance.vacancy)", replace: "if (false)" }],
  },
  {
    name: "a higher priority takes over at once",
    rule: "a leader hands over to a higher priority when its term has lasted its time",
    edits: [{ file: STANDING, find: "tenure.lastedMs < this.#minTermMs", replace: "false" }],
  },
  {
    name: "a leader gives way to its equals",
    rule: "only a higher priority is handed over to",
    edits: [
      {
        file: STANDING,
        find: "other.line.priority <= (best?.line.priority ?? this.#priority)",
        replace: "other.line.priority < (best?.line.priority ?? this.#priority)",
      },
    ],
  },
  {
    name: "a line of the roster is believed for good",
    rule: "a candidate whose line does not move for its ttl is gone",
    edits: [{ file: ROSTER, find: "now - at < line.ttlMs)", replace: "true)" }],
  },
  {
    name: "nobody is handed over to for its priority",
    rule: "a higher priority that waits leads in the end",
    edits: [{ file: STANDING, find: "if (best === undefined)", replace: "if (true)" }],
  },
  {
    name: "who is not eligible leads",
    rule: "an observer stands and does not campaign",
    edits: [
      {
        file: "src/election/candidate.js",
        find: "this.#member?.eligible === false ? () => false : options.ready",
        replace: "options.ready",
      },
    ],
  },
];
