/**
 * How candidates are named below an election's node, as the recipes of other
 * programs do it. A recipe orders names by what follows its own word, and takes
 * any other name for something it is not: a name of another kind is refused.
 */
import { ConclaveError } from "../../kit/errors.js";

/** Whose recipe: Curator's LeaderLatch; Curator's LeaderSelector and InterProcessMutex, go-zookeeper; kazoo. */
export type ZooKeeperLayout = "curator-latch" | "curator-lock" | "kazoo";

export interface Layout {
  readonly name: ZooKeeperLayout;
  /** Begin of a candidate's name; the server appends the sequence number. `uuid`: 32 hex digits. */
  prefix(uuid: string): string;
  /** A whole name, with the sequence number in its first group. */
  readonly pattern: RegExp;
  /** Whether parents are containers, which the server removes when they are empty. */
  readonly containers: boolean;
  /** Whether others overlook the end of a leader whose node was written to. */
  readonly valuesApart: boolean;
}

function dashed(uuid: string): string {
  return uuid.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

const LAYOUTS: Record<ZooKeeperLayout, Layout> = {
  "curator-latch": {
    name: "curator-latch",
    prefix: (uuid) => `_c_${dashed(uuid)}-latch-`,
    pattern: /^_c_[0-9a-f-]{32,36}-latch-(-?\d{9,10})$/,
    containers: true,
    valuesApart: true,
  },
  "curator-lock": {
    name: "curator-lock",
    prefix: (uuid) => `_c_${dashed(uuid)}-lock-`,
    pattern: /^_c_[0-9a-f-]{32,36}-lock-(-?\d{9,10})$/,
    containers: true,
    valuesApart: false,
  },
  kazoo: {
    name: "kazoo",
    prefix: (uuid) => `${uuid}__lock__`,
    pattern: /^[0-9a-f]{32}__lock__(-?\d{9,10})$/,
    containers: false,
    valuesApart: false,
  },
};

export const LAYOUT_NAMES: readonly ZooKeeperLayout[] = ["curator-latch", "curator-lock", "kazoo"];

export function layoutOf(name: ZooKeeperLayout): Layout {
  return LAYOUTS[name];
}

/** A candidate's node, as a list of children shows it. */
export interface Candidate {
  readonly name: string;
  readonly sequence: number;
}

/** A 31-bit counter of the parent. Near its end every recipe orders in another way, so we stop before. */
const LAST_SEQUENCE = 2_000_000_000;

/** The candidates, first come first. Throws `conflict` if another kind of node is among them. */
export function candidates(layout: Layout, parent: string, children: readonly string[]): Candidate[] {
  return children
    .map((name) => ({ name, sequence: sequenceOf(layout, parent, name) }))
    .toSorted((a, b) => a.sequence - b.sequence);
}

export function sequenceOf(layout: Layout, parent: string, name: string): number {
  const digits = layout.pattern.exec(name)?.[1];
  if (digits === undefined) {
    throw new ConclaveError(
      "conflict",
      `node ${JSON.stringify(name)} below ${JSON.stringify(parent)} is no candidate of layout ${layout.name}${hint(layout, name)}: ` +
        `all candidates of an election use one layout, and election names must not nest ("a" and "a/b")`,
    );
  }
  const sequence = Number(digits);
  if (sequence < 0 || sequence > LAST_SEQUENCE) {
    throw new ConclaveError(
      "conflict",
      `the sequence numbers below ${JSON.stringify(parent)} are used up (${sequence}): stop all candidates of this election, ` +
        `delete that node, and start them again`,
    );
  }
  return sequence;
}

/** Which layout the name is of, if it is of one. */
function hint(layout: Layout, name: string): string {
  const other = LAYOUT_NAMES.find((one) => one !== layout.name && LAYOUTS[one].pattern.test(name));
  return other === undefined ? "" : `, but of layout ${other}`;
}
