/**
 * Which processes belong to one command, known before it matters. The kernel
 * hands out process numbers in turn and tells the last one, so only numbers
 * handed out since the last look are examined: the cost depends on how often the
 * host starts processes, not on how many it runs. All of /proc is read only
 * where the kernel does not tell, or after a long time without a look.
 */
import { carriesLimit } from "./limit-mark.js";
import {
  allPids,
  identityOf,
  lastPid,
  pidLimit,
  readLocksLimit,
  readMarks,
  readName,
  readStat,
  ticksSinceBoot,
} from "./procfs.js";
import type { Stat } from "./procfs.js";
import { groupExists, probe, signalGroup, signalProcess } from "./signals.js";

/** By what the processes of a command are recognised. */
export interface Traces {
  /** A word that only they have in the environment. */
  readonly mark: string;
  /** A limit that only they have; see limit-mark.ts. `undefined`: none could be set here. */
  readonly limit: bigint | undefined;
}

/** `unknown`: it may not be examined, and runs as our user. */
type Verdict = "ours" | "foreign" | "gone" | "unknown";

/** `unknown`: some process may be of the command, and may not be examined. */
export type State = "alive" | "unknown" | "gone";

/** What a look came upon: processes of the command; numbers whose process had ended already; neither. */
export type News = "ours" | "gone" | "none";

/** More new numbers than this: a read of all /proc is cheaper. */
const LONGEST_RANGE = 4_096;
/** Looks in a row that must come upon none of the command where no single one is proof. Each takes far less than a fork. */
const QUIET_LOOKS = 20;
/** The same where each reads all of /proc. */
const QUIET_READS = 3;
/** Known processes, living and dead, before the dead ones are forgotten. */
const PRUNE_AT = 256;
/** On a host that starts processes faster than we look at them, the question is asked again later. */
const LONGEST_STATE_MS = 20;

export class ProcessTracker {
  readonly #traces: Traces;
  /** Processes of the command that were seen alive, and the group of each. */
  readonly #known = new Map<number, number>();
  readonly #unknown = new Set<number>();
  /** Examined when all of /proc was read. */
  readonly #foreign = new Map<number, number>();
  /** Numbers up to this one were examined. `undefined`: the kernel does not tell. */
  #cursor: number | undefined;
  #root: number | undefined;
  #rootSeen = false;
  #lookMs = 0;
  #pruneAt = PRUNE_AT;
  readonly #since = ticksSinceBoot();

  readonly #lastPid: () => number | undefined;

  /** To be made before the command is started. `last`: for tests. */
  constructor(traces: Traces, last: () => number | undefined = lastPid) {
    this.#traces = traces;
    this.#lastPid = last;
    this.#cursor = last();
  }

  /** The command itself, which leads its session and its group. */
  adopt(root: number): void {
    this.#root = root;
    this.#known.set(root, root);
    if (this.#cursor === undefined) return;
    const last = this.#lastPid();
    // A number that is not between two readings: what is told here is not what the kernel counts by.
    if (last === undefined || !isBetween(this.#cursor, root, last)) this.#cursor = undefined;
  }

  /** How long a look takes, lately. */
  get lookMs(): number {
    return this.#lookMs;
  }

  /** Groups that hold processes of the command. */
  groups(): number[] {
    return [...new Set(this.#known.values())].filter(groupExists);
  }

  /**
   * Examines every process that was started since the last look. `found` is
   * called for each one of the command at once, before the next is examined.
   */
  look(found: (pid: number) => void = () => {}): News {
    const since = performance.now();
    if (this.#known.size > this.#pruneAt) this.#prune();
    const last = this.#cursor === undefined ? undefined : this.#lastPid();
    const range = last === undefined ? undefined : rangeOf(this.#cursor!, last);
    if (last !== undefined) this.#cursor = last;
    // A process that has ended unseen may have started another after we asked for the last number.
    let news: News = range === undefined ? "gone" : "none";
    for (const pid of range ?? this.#unseen()) {
      const verdict = this.#examine(pid);
      if (verdict === "ours") found(pid);
      if (verdict === "ours" || (verdict === "gone" && news === "none")) news = verdict;
    }
    this.#lookMs = Math.max(performance.now() - since, this.#lookMs / 2);
    return news;
  }

  /** SIGKILL to all that are known, then to each that is found, until none is or `limitMs` have passed. */
  kill(limitMs: number): void {
    const end = performance.now() + limitMs;
    for (const pid of this.#known.keys()) this.#end(pid);
    for (let quiet = 0; quiet < this.#quietLooks && performance.now() < end;) {
      const news = this.look((pid) => this.#end(pid));
      if (news === "none") return;
      quiet = news === "ours" ? 0 : quiet + 1;
    }
  }

  /**
   * Whether any process of the command lives. First all that are known are found dead, then nothing new turns up:
   * the other way round one could start another in between.
   */
  state(): State {
    const end = performance.now() + LONGEST_STATE_MS;
    for (let quiet = 0; quiet < this.#quietLooks;) {
      if (this.#anyLiving()) return "alive";
      const news = this.look();
      if (news === "none") break;
      quiet = news === "ours" ? 0 : quiet + 1;
      if (quiet < this.#quietLooks && performance.now() > end) return "alive";
    }
    return this.#stateOfUnknown();
  }

  get #quietLooks(): number {
    return this.#cursor === undefined ? QUIET_READS : QUIET_LOOKS;
  }

  /** Names of the processes that may not be examined. */
  unknowns(): string[] {
    return [...this.#unknown].map((pid) => `${pid} (${readName(pid)})`);
  }

  /** The group too, at one stroke: a process of a group cannot slip away by starting another. */
  #end(pid: number): void {
    const pgrp = this.#known.get(pid);
    if (pgrp !== undefined) signalGroup(pgrp, "SIGKILL");
    signalProcess(pid, "SIGKILL");
  }

  /** A command may start processes without end: those that have ended are forgotten. */
  #prune(): void {
    for (const pid of this.#known.keys()) if (probe(pid) === "gone") this.#known.delete(pid);
    this.#pruneAt = 2 * this.#known.size + PRUNE_AT;
  }

  #anyLiving(): boolean {
    for (const pid of this.#known.keys()) {
      if (isLiving(pid)) return true;
      this.#known.delete(pid);
    }
    return false;
  }

  #stateOfUnknown(): State {
    for (const pid of this.#unknown) {
      const verdict = this.#judge(pid);
      if (verdict === "unknown") return "unknown";
      this.#unknown.delete(pid);
      if (verdict === "ours") return "alive";
    }
    return "gone";
  }

  /** Files `pid` under what it is now. A number that was handed out again is examined again. */
  #examine(pid: number): Verdict {
    this.#unknown.delete(pid);
    this.#known.delete(pid);
    // The number of a group is not handed out again while the group exists: handed out twice, it is another's.
    if (pid === this.#root && this.#rootSeen) this.#root = undefined;
    if (pid === this.#root) this.#rootSeen = true;
    const verdict = this.#judge(pid);
    if (verdict === "unknown") this.#unknown.add(pid);
    return verdict;
  }

  #judge(pid: number): Verdict {
    if (pid === process.pid) return "foreign";
    const stat = readStat(pid);
    if (stat === "denied" || stat === "gone") return unseen(pid);
    if (stat.dead) return "gone";
    if (stat.started < this.#since) return "foreign";
    if (this.#isKin(stat) || this.#hasLimit(pid)) {
      this.#known.set(pid, stat.pgrp);
      return "ours";
    }
    const marks = readMarks(pid);
    if (marks === "gone") return "gone";
    if (marks === "denied") {
      // Its limit was readable and not ours. Without one nothing speaks for or against it.
      return this.#traces.limit === undefined ? unseen(pid) : "foreign";
    }
    if (!marks.includes(this.#traces.mark)) return "foreign";
    // By the environment alone, which can be copied: its group is not taken for ours.
    this.#known.set(pid, pid);
    return "ours";
  }

  /** Of the command's group or session, or the child of a process that is known. */
  #isKin({ pgrp, session, parent }: Stat): boolean {
    return (
      (this.#root !== undefined && (pgrp === this.#root || session === this.#root)) || this.#known.has(parent)
    );
  }

  #hasLimit(pid: number): boolean {
    const { limit } = this.#traces;
    if (limit === undefined) return false;
    const own = readLocksLimit(pid);
    return typeof own === "bigint" && carriesLimit(own, limit);
  }

  /** All processes that exist, less those that were found to be foreign in an earlier read of all. */
  *#unseen(): Iterable<number> {
    const pids = allPids();
    const before = new Map(this.#foreign);
    this.#foreign.clear();
    for (const pid of pids) {
      const identity = identityOf(pid);
      if (identity === undefined) continue;
      if (before.get(pid) === identity) this.#foreign.set(pid, identity);
      else if (!this.#known.has(pid) || !isLiving(pid)) {
        yield pid;
        if (!this.#known.has(pid) && !this.#unknown.has(pid)) this.#foreign.set(pid, identity);
      }
    }
  }
}

/** Numbers in turn from the one after `from` to `to`. `undefined`: too many. */
function rangeOf(from: number, to: number): number[] | undefined {
  const limit = to < from ? pidLimit() : Number.MAX_SAFE_INTEGER;
  if (limit === undefined) return undefined;
  const length = to >= from ? to - from : limit - 1 - from + to;
  if (length < 0 || length > LONGEST_RANGE) return undefined;
  return Array.from({ length }, (_, index) => {
    const pid = from + 1 + index;
    return pid < limit ? pid : pid - limit + 1;
  });
}

function isBetween(from: number, pid: number, to: number): boolean {
  return from <= to ? from < pid && pid <= to : pid > from || pid <= to;
}

/** A process that /proc does not show. Mounted with `hidepid` it hides undumpable ones of our own user too. */
function unseen(pid: number): Verdict {
  const found = probe(pid);
  if (found === "exists") return "unknown";
  return found === "forbidden" ? "foreign" : "gone";
}

function isLiving(pid: number): boolean {
  const stat = readStat(pid);
  if (stat === "denied" || stat === "gone") return probe(pid) !== "gone";
  return !stat.dead;
}
