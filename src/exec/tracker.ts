/**
 * Which processes belong to one command, known before it matters. The kernel
 * hands out process numbers in turn and tells the last one, so only numbers
 * handed out since the last look are examined: the cost depends on how often the
 * host starts processes, not on how many it runs. All of /proc is read only
 * where the kernel does not tell, or after a long time without a look.
 */
import { AbsentPids } from "./absent-pids.js";
import { PidQueue } from "./pid-queue.js";
import { isBetween, rangeOf } from "./pid-range.js";
import { allPids, identityOf, lastPid, readName, ticksSinceBoot } from "./procfs.js";
import type { Stat } from "./procfs.js";
import { isLiving, recognise } from "./recognise.js";
import type { Traces, Ownership } from "./recognise.js";
import { groupExists, probe, signalGroup, signalProcess } from "./signals.js";

/** `unknown`: some process may be of the command, and may not be examined. */
export type State = "alive" | "unknown" | "gone";

/**
 * What a look came upon: processes of the command; numbers whose process had ended already; neither. `more`: none of
 * the command so far, but there was no time for all that is new.
 */
export type News = "ours" | "more" | "gone" | "none";

/** Looks in a row that must come upon none of the command where no single one is proof. Each takes far less than a fork. */
const QUIET_LOOKS = 20;
/** The same where each reads all of /proc. */
const QUIET_READS = 3;
/** Known processes, living and dead, before the dead ones are forgotten. */
const PRUNE_AT = 256;
/** A burst of new processes on the host must not keep us from killing what is known. */
const LONGEST_LOOK_MS = 10;
/** On a host that starts processes faster than we look at them, the question is asked again later. */
const LONGEST_STATE_MS = 20;

export class ProcessTracker {
  readonly #traces: Traces;
  /** Processes of the command that were seen alive. */
  readonly #known = new Set<number>();
  /** Their groups. Kept longer than they are: a group is killed at one stroke, whoever is in it by then. */
  readonly #groups = new Set<number>();
  readonly #unknown = new Set<number>();
  readonly #absent = new AbsentPids();
  /** Examined when all of /proc was read. */
  readonly #foreign = new Map<number, number>();
  /** Numbers up to this one were examined, or wait for it. `undefined`: the kernel does not tell. */
  #cursor: number | undefined;
  #root: number | undefined;
  #rootSeen = false;
  /** Numbers that were handed out and that no look had time for. */
  readonly #waiting: PidQueue;
  /** What is left of a read of all /proc. */
  #listing: Generator<number, void> | undefined;
  #quiet = 0;
  #catchUpMs = 0;
  #lookMs = 0;
  #pruneAt = PRUNE_AT;
  readonly #since = ticksSinceBoot();
  readonly #lastPid: () => number | undefined;

  /** To be made before the command is started. `last`: for tests. */
  constructor(traces: Traces, last: () => number | undefined = lastPid) {
    this.#traces = traces;
    // Without the limit a process may be known by its parent only: then parents come first.
    this.#waiting = new PidQueue(traces.limit === undefined);
    this.#lastPid = last;
    this.#cursor = last();
  }

  /** The command itself, which leads its session and its group. */
  adopt(root: number): void {
    this.#root = root;
    this.#known.add(root);
    this.#groups.add(root);
    if (this.#cursor === undefined) return;
    const last = this.#lastPid();
    // The pid is not between two readings: the reported last pid is not the kernel's counter.
    if (last === undefined || !isBetween(this.#cursor, root, last)) this.#cursor = undefined;
  }

  /** How long it takes, lately, to examine all that is new. */
  get lookMs(): number {
    return Math.max(this.#lookMs, this.#catchUpMs);
  }

  /** Groups that hold processes of the command. */
  groups(): number[] {
    return [...this.#groups].filter(groupExists);
  }

  /**
   * Examines what was started since the last look, for a few milliseconds; the rest is left for the next one. `found`
   * is called for each process of the command at once, before the next is examined.
   */
  look(found: (pid: number) => void = () => {}): News {
    const since = performance.now();
    if (this.#known.size + this.#groups.size > this.#pruneAt) this.#prune();
    const whole = !this.#hasMore;
    this.#addNew();
    // One that ended unseen, in a look before or while all of /proc was read, may have started another since.
    const proof = whole && this.#listing === undefined;
    let news: News = "none";
    for (let at = since; at - since < LONGEST_LOOK_MS; at = performance.now()) {
      const pid = this.#next();
      if (pid === undefined) break;
      const ownership = this.#file(pid);
      if (ownership === "ours") found(pid);
      // /proc lists what exists; a number of our own counting may be on its way there.
      if (ownership === "gone" && this.#cursor !== undefined) this.#absent.add(pid, at);
      if (ownership === "ours" || (ownership === "gone" && news === "none")) news = ownership;
    }
    if (this.#examineAbsent(found, since)) news = "ours";
    this.#catchUpMs += performance.now() - since;
    if (this.#hasMore) return news === "ours" ? news : "more";
    this.#lookMs = Math.max(this.#catchUpMs, this.#lookMs / 2);
    this.#catchUpMs = 0;
    return news === "none" && !proof ? "gone" : news;
  }

  get #hasMore(): boolean {
    return !this.#waiting.isEmpty || this.#listing !== undefined;
  }

  /** Takes note of the numbers that were handed out since the last time, or begins to read all of /proc. */
  #addNew(): void {
    const last = this.#cursor === undefined ? undefined : this.#lastPid();
    const range = last === undefined ? undefined : rangeOf(this.#cursor!, last);
    if (range !== undefined && this.#waiting.hasSpaceFor(range.length)) {
      this.#cursor = last;
      for (const pid of range) this.#forget(pid);
      this.#waiting.add(range);
    } else if (this.#listing === undefined) {
      if (last !== undefined) this.#cursor = last;
      // Those that exist are in /proc, too.
      this.#waiting.clear();
      this.#listing = this.#unseen();
    }
  }

  #next(): number | undefined {
    const waiting = this.#waiting.take();
    if (waiting !== undefined) return waiting;
    const listed = this.#listing?.next().value ?? undefined;
    if (listed === undefined) this.#listing = undefined;
    else this.#forget(listed);
    return listed;
  }

  /**
   * SIGKILL to all that are known, then to each that is found, until none is or `limitMs` have passed. `false`: there
   * may be more.
   */
  kill(limitMs: number): boolean {
    const end = performance.now() + limitMs;
    const killed = new Set(this.#groups);
    for (const group of killed) signalGroup(group, "SIGKILL");
    for (const pid of this.#known) signalProcess(pid, "SIGKILL");
    for (let quiet = 0; quiet < this.#quietLooks;) {
      const news = this.look((pid) => this.#end(pid, killed));
      if (news === "none") return true;
      quiet = news === "gone" ? quiet + 1 : 0;
      if (performance.now() > end) return false;
    }
    return true;
  }

  /**
   * Whether any process of the command lives. First all that are known are found dead, then nothing new turns up:
   * the other way round one could start another in between.
   */
  state(): State {
    const end = performance.now() + LONGEST_STATE_MS;
    // Counted over several calls: on an overloaded host one look may take longer than a call.
    while (this.#quiet < this.#quietLooks) {
      if (this.#anyLiving()) {
        this.#quiet = 0;
        return "alive";
      }
      const news = this.look();
      if (news === "none") break;
      this.#quiet = news === "gone" ? this.#quiet + 1 : 0;
      if (this.#quiet < this.#quietLooks && performance.now() > end) return "alive";
    }
    this.#quiet = 0;
    // All that are known are dead, so nothing is on its way into /proc any more: this settles the absent ones.
    if (this.#examineAbsent(() => {}) || this.look() === "ours") return "alive";
    return this.#stateOfUnknown();
  }

  get #quietLooks(): number {
    return this.#cursor === undefined ? QUIET_READS : QUIET_LOOKS;
  }

  /** Names of the processes that may not be examined. */
  unknowns(): string[] {
    return [...this.#unknown].map((pid) => `${pid} (${readName(pid)})`);
  }

  /** Its group too, at one stroke: a process of a group cannot slip away by starting another. `killed`: groups that were. */
  #end(pid: number, killed: Set<number>): void {
    for (const group of this.#groups) if (!killed.has(group)) signalGroup(group, "SIGKILL");
    for (const group of this.#groups) killed.add(group);
    signalProcess(pid, "SIGKILL");
  }

  /** Whether a number under which nothing was found, and which is due by then, is of the command now. */
  #examineAbsent(found: (pid: number) => void, dueBy = Infinity): boolean {
    return this.#absent.examine(dueBy, (pid) => {
      const ownership = this.#file(pid);
      if (ownership === "ours") found(pid);
      return ownership;
    });
  }

  /** A command may start processes without end: those that have ended are forgotten. */
  #prune(): void {
    for (const pid of this.#known) if (probe(pid) === "gone") this.#known.delete(pid);
    for (const group of this.#groups) if (!groupExists(group)) this.#groups.delete(group);
    this.#pruneAt = 2 * (this.#known.size + this.#groups.size) + PRUNE_AT;
  }

  #anyLiving(): boolean {
    for (const pid of this.#known) {
      if (isLiving(pid)) return true;
      this.#known.delete(pid);
    }
    return false;
  }

  #stateOfUnknown(): State {
    for (const pid of this.#unknown) {
      const ownership = this.#classify(pid);
      if (ownership === "unknown") return "unknown";
      this.#unknown.delete(pid);
      if (ownership === "ours") return "alive";
    }
    return "gone";
  }

  /**
   * A number that was handed out, perhaps again: the process that had it has ended. So has its group, because the number
   * of a group is not handed out while the group exists.
   */
  #forget(pid: number): void {
    this.#absent.delete(pid);
    const first = pid === this.#root && !this.#rootSeen;
    this.#rootSeen ||= first;
    if (first) return;
    this.#known.delete(pid);
    this.#groups.delete(pid);
  }

  /** Files `pid` under what it is now. */
  #file(pid: number): Ownership {
    this.#unknown.delete(pid);
    this.#known.delete(pid);
    const ownership = this.#classify(pid);
    if (ownership === "unknown") this.#unknown.add(pid);
    if (ownership === "ours") this.#known.add(pid);
    return ownership;
  }

  #classify(pid: number): Ownership {
    if (pid === process.pid) return "foreign";
    const { ownership, pgrp } = recognise(pid, this.#traces, this.#since, (stat) => this.#isKin(stat));
    if (pgrp !== undefined) this.#groups.add(pgrp);
    return ownership;
  }

  /** Of the command's session or one of its groups, or the child of a process that is known. */
  #isKin({ pgrp, session, parent }: Stat): boolean {
    return this.#groups.has(pgrp) || this.#groups.has(session) || this.#known.has(parent);
  }

  /** All processes that exist, less those that were found to be foreign in an earlier read of all. */
  *#unseen(): Generator<number, void> {
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
