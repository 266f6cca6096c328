/** Whether one process is of a command, by what /proc shows of it. */
import { carriesLimit } from "./limit-mark.js";
import { hidesProcesses, readLocksLimit, readMarks, readStat } from "./procfs.js";
import type { Stat, Unread } from "./procfs.js";
import { probe } from "./signals.js";

/** By what the processes of a command are recognised. */
export interface Traces {
  /** A word that only they have in the environment. */
  readonly mark: string;
  /** A limit that only they have; see limit-mark.ts. `undefined`: none could be set here. */
  readonly limit: bigint | undefined;
}

/** `unknown`: it may not be examined, and runs as our user. */
export type Ownership = "ours" | "foreign" | "gone" | "unknown";

export interface Recognition {
  readonly ownership: Ownership;
  /** With "ours": its group, if all of that is the command's. */
  readonly pgrp?: number;
}

/** `since`: when the command was not started yet, in ticks. `isKin`: whether it is related to a process that is known. */
export function recognise(
  pid: number,
  { limit, mark }: Traces,
  since: number,
  isKin: (stat: Stat) => boolean,
): Recognition {
  const stat = readStat(pid);
  if (stat === "denied" || stat === "gone") return { ownership: unseen(pid, stat) };
  if (stat.dead) return { ownership: "gone" };
  if (stat.started < since) return { ownership: "foreign" };
  if (isKin(stat)) return { ownership: "ours", pgrp: stat.pgrp };
  const own = limit === undefined ? null : readLocksLimit(pid);
  // It is ending, and may have started another: that it does not show our limit any more does not make it foreign.
  if (own === "gone") return { ownership: "gone" };
  if (typeof own === "bigint" && carriesLimit(own, limit!)) return { ownership: "ours", pgrp: stat.pgrp };
  const marks = readMarks(pid);
  if (marks === "gone") return { ownership: "gone" };
  // Its limit was readable and not ours. Without one nothing speaks for or against it.
  if (marks === "denied") return { ownership: limit === undefined ? unseen(pid, marks) : "foreign" };
  // By the environment alone, which can be copied: its group is not taken for ours.
  return { ownership: marks.includes(mark) ? "ours" : "foreign" };
}

/** A process of which /proc does not show this. */
function unseen(pid: number, why: Unread): Ownership {
  // To ask the kernel about each of thousands that have ended takes long.
  if (why === "gone" && !hidesProcesses()) return "gone";
  const found = probe(pid);
  if (found === "exists") return "unknown";
  return found === "forbidden" ? "foreign" : "gone";
}

export function isLiving(pid: number): boolean {
  const stat = readStat(pid);
  if (stat === "gone" && !hidesProcesses()) return false;
  if (stat === "denied" || stat === "gone") return probe(pid) !== "gone";
  return !stat.dead;
}
