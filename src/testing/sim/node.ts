/**
 * A machine and the one process on it. The machine has the clocks; the process
 * has the memory, and is stopped, stalled, suspended and killed.
 */
import { Oscillator } from "./oscillator.js";
import { Random } from "./random.js";
import type { Scheduled, Scheduler } from "./scheduler.js";

/** Ways in which a process can be kept from running. */
export type Hindrance = "paused" | "stalled" | "suspended";

export class SimNode {
  process: SimProcess | undefined;
  incarnations = 0;
  readonly #until: Record<Hindrance, number> = { paused: 0, stalled: 0, suspended: 0 };

  readonly id: string;
  /** When it was last suspended, in true time. */
  suspendedAt = -Infinity;
  readonly #random: Random;
  #startedAt = 0;

  constructor(
    readonly index: number,
    readonly seed: number,
    readonly scheduler: Scheduler,
    readonly oscillator: Oscillator,
  ) {
    this.id = `n${index}`;
    this.#random = new Random(seed, `${this.id}/wake`);
  }

  start(): SimProcess {
    this.incarnations++;
    this.#startedAt = this.scheduler.now;
    this.process = new SimProcess(this, this.incarnations);
    return this.process;
  }

  /** SIGKILL: memory is gone, and nothing of this process ever runs again. */
  kill(): void {
    this.process?.die();
    this.process = undefined;
  }

  /** Whether code of this node runs at this moment. A stalled one does: it is busy with something else. */
  get running(): boolean {
    return this.process !== undefined && !this.#is("paused") && !this.#is("suspended");
  }

  /** Whether its event loop turns. */
  get turning(): boolean {
    return this.running && !this.#is("stalled");
  }

  /** Since when its event loop has been turning without a break, in true time. */
  get turningSince(): number {
    const { paused, stalled, suspended } = this.#until;
    return Math.max(this.#startedAt, paused, stalled, suspended);
  }

  hinder(how: Hindrance, untilTime: number): void {
    if (untilTime <= this.#until[how]) return;
    this.#until[how] = untilTime;
    if (how === "suspended") {
      this.suspendedAt = this.scheduler.now;
      this.#setSuspended(true);
    }
    // Waking runs no node code by itself, but it is the moment at which a stale answer would be given: half the
    // time the invariants look at it, half the time whatever was waiting runs first.
    const wake = (): void => this.#wake(how);
    if (this.#random.chance(0.5)) this.scheduler.at(untilTime, wake);
    else this.scheduler.quietly(untilTime, wake);
  }

  setRate(rate: number): void {
    this.oscillator.setRate(this.scheduler.now, rate);
    this.process?.rearm();
  }

  #is(how: Hindrance): boolean {
    return this.scheduler.now < this.#until[how];
  }

  #wake(how: Hindrance): void {
    if (this.#is(how)) return; // it was prolonged
    if (how === "suspended") this.#setSuspended(false);
    this.process?.catchUp();
  }

  #setSuspended(suspended: boolean): void {
    this.oscillator.setSuspended(this.scheduler.now, suspended);
    this.process?.rearm();
  }
}

export interface NodeTimer {
  readonly dueMono: number;
  readonly order: number;
  fire(): void;
}

/** One start of the program: what a crash ends. */
export class SimProcess {
  alive = true;
  readonly label: string;
  readonly #timers = new Map<NodeTimer, Scheduled>();
  readonly #overdue: NodeTimer[] = [];
  readonly #inbox: (() => void)[] = [];
  readonly #threads: (() => void)[] = [];
  readonly #random: Random;
  #timerOrder = 0;

  constructor(
    readonly node: SimNode,
    readonly incarnation: number,
  ) {
    this.label = `${node.id}.${incarnation}`;
    this.#random = new Random(node.seed, `${this.label}/loop`);
  }

  /** A random stream of this process for one purpose. */
  stream(purpose: string): Random {
    return new Random(this.node.seed, `${this.label}/${purpose}`);
  }

  /** Node's timers are up to a millisecond early, and late by whatever the loop was doing. */
  setTimer(delayMs: number, fire: () => void): NodeTimer {
    const kind = this.#random.next();
    const size = this.#random.next();
    const skew = kind < 0.05 ? -size : kind < 0.98 ? size : size * 30;
    const now = this.node.oscillator.mono(this.node.scheduler.now);
    const timer = { dueMono: now + Math.max(1, delayMs) + skew, order: this.#timerOrder++, fire };
    if (this.alive) this.#arm(timer);
    return timer;
  }

  clearTimer(timer: NodeTimer): void {
    this.#timers.get(timer)?.cancel();
    this.#timers.delete(timer);
  }

  /** Something arrived from outside: runs when the event loop turns. */
  deliver(run: () => void): void {
    if (!this.alive) return;
    if (this.node.turning) run();
    else this.#inbox.push(run);
  }

  /** The same for a system call under way in a thread: it takes effect unless the process is stopped; a stall does not hold it up. */
  whenRunning(run: () => void): void {
    if (!this.alive || this.node.running) run();
    else this.#threads.push(run);
  }

  /** The clock changed its pace: the same timers fall due at other true times. */
  rearm(): void {
    for (const [timer, scheduled] of this.#timers) {
      scheduled.cancel();
      this.#arm(timer);
    }
  }

  /** Runs what was held back: overdue timers by due time, messages by arrival, either kind first. */
  catchUp(): void {
    if (!this.node.running) return;
    for (const run of this.#threads.splice(0)) run();
    if (!this.node.turning) return;
    const timers = this.#overdue.splice(0).sort((a, b) => a.dueMono - b.dueMono || a.order - b.order);
    const messages = this.#inbox.splice(0);
    const runs = timers.map((timer) => () => this.#fire(timer));
    const arrivals = messages.map((run) => () => this.deliver(run));
    const ordered = this.#random.chance(0.7) ? [...runs, ...arrivals] : [...arrivals, ...runs];
    for (const run of ordered) this.node.scheduler.inOrder(run);
  }

  die(): void {
    this.alive = false;
    for (const scheduled of this.#timers.values()) scheduled.cancel();
    this.#timers.clear();
    this.#overdue.length = 0;
    this.#inbox.length = 0;
    this.#threads.length = 0;
  }

  #arm(timer: NodeTimer): void {
    const time = this.node.oscillator.whenMono(timer.dueMono);
    if (time === Infinity) {
      this.#timers.set(timer, unscheduled);
      return;
    }
    this.#timers.set(
      timer,
      this.node.scheduler.at(time, () => this.#fire(timer)),
    );
  }

  #fire(timer: NodeTimer): void {
    if (!this.#timers.has(timer)) return;
    if (!this.node.turning) {
      this.#overdue.push(timer);
      return;
    }
    this.#timers.delete(timer);
    timer.fire();
  }
}

/** A timer of a suspended machine: armed anew when it resumes. */
const unscheduled: Scheduled = { time: Infinity, cancel: () => {} };
