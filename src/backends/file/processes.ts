/**
 * The dead-process rule: leadership may be taken without waiting for its lease
 * if everyone who could act under it is certainly dead.
 *
 * Certain means: the record was written under the same boot of the same kernel,
 * in our pid namespace (a pid means the same process) and our time namespace (a
 * start time means the same instant), and each process it lists is gone or has
 * given its pid to another. Anything else is not known, and waits.
 *
 * Not promised: a zombie counts as alive, and so does a process that is stuck.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { errnoOf } from "../../files/numbered-links.js";

export interface ListedProcess {
  readonly pid: number;
  /** Field 22 of /proc/<pid>/stat: clock ticks since boot, as a decimal string. */
  readonly startTime: string;
}

/** Where a record was written, and which processes must be dead before nobody can act on it. */
export interface Host {
  readonly bootId: string;
  readonly pidNs: string;
  readonly timeNs: string;
  readonly processes: readonly ListedProcess[];
}

/** What never changes while this process lives. */
interface Here extends Omit<Host, "processes"> {
  readonly self: ListedProcess;
}

/** What the rule asks of the operating system. */
export interface ProcessTable {
  readonly pid: number;
  /** Contents of a file of /proc. Throws if it is not there. */
  file(path: string): string;
  /** Target of a link of /proc. Throws if it is not there. */
  target(path: string): string;
  /** As `kill(pid, 0)`: throws ESRCH if there is no such process. */
  probe(pid: number): void;
}

/** /proc is memory, not disk: reading it at once is cheaper than handing it to a thread. */
const systemTable: ProcessTable = {
  pid: process.pid,
  file: (path) => readFileSync(path, "latin1"),
  target: (path) => readlinkSync(path),
  probe: (pid) => void process.kill(pid, 0),
};

/** More than this in a record is not ours. */
const MOST_PROCESSES = 64;
const LARGEST_PID = 2 ** 22;

export class ProcessRule {
  readonly #table: ProcessTable;
  readonly #others: () => readonly number[];
  readonly #here: Here | undefined;

  /** `others`: further processes that must be dead, besides this one. */
  constructor(others: () => readonly number[] = () => [], table: ProcessTable = systemTable) {
    this.#table = table;
    this.#others = others;
    this.#here = this.#identify();
  }

  /** `false`: this system does not tell enough about processes; nothing is ever called dead. */
  get usable(): boolean {
    return this.#here !== undefined;
  }

  /** What a record written now says. `undefined`: the rule cannot be used for it (no /proc, a listed process not found). */
  host(): Host | undefined {
    if (this.#here === undefined) return undefined;
    const processes: ListedProcess[] = [this.#here.self];
    for (const pid of new Set(this.#others())) {
      if (pid === this.#table.pid) continue;
      const startTime = isPid(pid) ? this.#startTime(pid) : null;
      // A listed process that is not there may have left something behind that nobody watches any more.
      if (startTime === null) return undefined;
      processes.push({ pid, startTime });
    }
    const { bootId, pidNs, timeNs } = this.#here;
    return processes.length <= MOST_PROCESSES ? { bootId, pidNs, timeNs, processes } : undefined;
  }

  /** `true` only if every process listed is certainly dead. */
  dead(host: Host | undefined): boolean {
    const here = this.#here;
    if (host === undefined || here === undefined || host.processes.length === 0) return false;
    if (host.bootId !== here.bootId || host.pidNs !== here.pidNs || host.timeNs !== here.timeNs) return false;
    return host.processes.every((listed) => this.#gone(listed));
  }

  #gone({ pid, startTime }: ListedProcess): boolean {
    try {
      this.#table.probe(pid);
    } catch (error) {
      if (errnoOf(error) === "ESRCH") return true;
      if (errnoOf(error) !== "EPERM") return false;
    }
    const now = this.#startTime(pid);
    return now !== null && now !== startTime;
  }

  #startTime(pid: number): string | null {
    try {
      // The name in parentheses may itself hold spaces and parentheses: count from the last one.
      const stat = this.#table.file(`/proc/${pid}/stat`);
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const startTime = fields[19];
      return startTime !== undefined && /^[0-9]{1,20}$/.test(startTime) ? startTime : null;
    } catch {
      return null;
    }
  }

  #identify(): Here | undefined {
    try {
      // A /proc of another pid namespace would speak of other processes.
      if (this.#table.target("/proc/self") !== String(this.#table.pid)) return undefined;
      const bootId = this.#table.file("/proc/sys/kernel/random/boot_id").trim();
      const pidNs = this.#table.target("/proc/self/ns/pid");
      const timeNs = this.#table.target("/proc/self/ns/time");
      const startTime = this.#startTime(this.#table.pid);
      if (bootId.length === 0 || startTime === null) return undefined;
      return { bootId, pidNs, timeNs, self: { pid: this.#table.pid, startTime } };
    } catch {
      return undefined;
    }
  }
}

/** Only a complete, well-formed list counts; a record without one is waited for. */
export function parseHost(value: unknown): Host | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { bootId, pidNs, timeNs, processes } = value as Record<string, unknown>;
  if (!isWord(bootId) || !isWord(pidNs) || !isWord(timeNs)) return undefined;
  if (!Array.isArray(processes) || processes.length === 0 || processes.length > MOST_PROCESSES)
    return undefined;
  const listed: ListedProcess[] = [];
  for (const process of processes as unknown[]) {
    if (typeof process !== "object" || process === null) return undefined;
    const { pid, startTime } = process as Record<string, unknown>;
    if (!isPid(pid) || typeof startTime !== "string" || !/^[0-9]{1,20}$/.test(startTime)) return undefined;
    listed.push({ pid, startTime });
  }
  return { bootId, pidNs, timeNs, processes: listed };
}

/** Zero and negative numbers would ask about whole process groups. */
function isPid(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0 && value <= LARGEST_PID;
}

function isWord(value: unknown): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= 128;
}
