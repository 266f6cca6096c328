/**
 * How all processes of a command are found and killed. Chosen once, when the watchdog starts:
 *
 * - `cgroup`: the kernel keeps account of them and kills them at one stroke (cgroup.ts);
 * - `scan`: they are found in /proc by what they inherit (tracker.ts);
 * - `group`: where there is no /proc, the process group is all that is known.
 */
import { Cgroup } from "./cgroup.js";
import type { Traces } from "./recognise.js";
import { groupExists, signalGroup } from "./signals.js";
import { ProcessTracker } from "./tracker.js";
import type { State } from "./tracker.js";

export const CONTAINMENTS = ["cgroup", "scan", "group"] as const;
export type ContainmentKind = (typeof CONTAINMENTS)[number];

/** By what the processes of one run of a command are known. The wrapper has the same, should it lose the watchdog. */
export interface RunTraces {
  readonly contain: ContainmentKind;
  readonly mark: string;
  /** Decimal. `null`: none could be set. */
  readonly limit: string | null;
  /** With `cgroup`: its directory. */
  readonly cgroup: string | null;
}

export interface Containment {
  /** Runs `start`; what it forks is contained from its first instruction. Throws if that cannot be done. */
  launch<T>(start: () => T): T;
  /** The command has this number, and leads a group and a session of its own. */
  adopt(root: number): void;
  /** To be called often: the less is new, the faster `kill` is. `false`: there was no time for all that is new. */
  look(): boolean;
  /**
   * SIGKILL to everything; tries for `limitMs` to find more. To be repeated until `state` is "gone", and at once if
   * this is `false`: then there was more than there was time for.
   */
  kill(limitMs: number): boolean;
  state(): State;
  /** Words for what may live and may not be examined. */
  unknowns(): readonly string[];
  /** How long it may take to find what was started a moment ago. */
  readonly lookMs: number;
  /** What a shell can end if we cannot: groups by number, cgroups by directory. */
  targets(): readonly string[];
  /** Nothing lives any more. */
  close(): void;
}

export function openContainment({ contain, mark, limit, cgroup }: RunTraces): Containment {
  if (contain === "group") return new GroupContainment();
  const scan = new ScanContainment({ mark, limit: limit === null ? undefined : BigInt(limit) });
  return contain === "cgroup" && cgroup !== null ? new CgroupContainment(new Cgroup(cgroup), scan) : scan;
}

class GroupContainment implements Containment {
  readonly lookMs = 0;
  #root: number | undefined;

  launch<T>(start: () => T): T {
    return start();
  }

  adopt(root: number): void {
    this.#root = root;
  }

  look(): boolean {
    return true;
  }

  kill(): boolean {
    if (this.#root !== undefined) signalGroup(this.#root, "SIGKILL");
    return true;
  }

  state(): State {
    return this.#root !== undefined && groupExists(this.#root) ? "alive" : "gone";
  }

  unknowns(): readonly string[] {
    return [];
  }

  targets(): readonly string[] {
    return this.#root === undefined ? [] : [String(this.#root)];
  }

  close(): void {}
}

class ScanContainment implements Containment {
  readonly #tracker: ProcessTracker;

  constructor(traces: Traces) {
    this.#tracker = new ProcessTracker(traces);
  }

  get lookMs(): number {
    return this.#tracker.lookMs;
  }

  launch<T>(start: () => T): T {
    return start();
  }

  adopt(root: number): void {
    this.#tracker.adopt(root);
  }

  look(): boolean {
    return this.#tracker.look() !== "more";
  }

  kill(limitMs: number): boolean {
    return this.#tracker.kill(limitMs);
  }

  state(): State {
    return this.#tracker.state();
  }

  unknowns(): readonly string[] {
    return this.#tracker.unknowns();
  }

  targets(): readonly string[] {
    return this.#tracker.groups().map(String);
  }

  close(): void {}
}

/** A process may be moved out of its cgroup (su with systemd's PAM module, systemd-run --scope): the scan finds those. */
class CgroupContainment implements Containment {
  readonly #cgroup: Cgroup;
  readonly #escaped: ScanContainment;

  constructor(cgroup: Cgroup, escaped: ScanContainment) {
    this.#cgroup = cgroup;
    this.#escaped = escaped;
  }

  /** Only for what has left the cgroup, and that is rare. */
  get lookMs(): number {
    return this.#escaped.lookMs;
  }

  launch<T>(start: () => T): T {
    this.#cgroup.create();
    return this.#cgroup.launch(start);
  }

  adopt(root: number): void {
    this.#escaped.adopt(root);
  }

  look(): boolean {
    return this.#escaped.look();
  }

  kill(limitMs: number): boolean {
    try {
      this.#cgroup.kill();
    } catch {
      // It is not there (yet, or any more). The state says what lives.
    }
    return this.#escaped.kill(limitMs);
  }

  state(): State {
    return this.#cgroup.populated() ? "alive" : this.#escaped.state();
  }

  unknowns(): readonly string[] {
    return this.#escaped.unknowns();
  }

  targets(): readonly string[] {
    return [this.#cgroup.directory, ...this.#escaped.targets()];
  }

  close(): void {
    this.#cgroup.remove();
  }
}
