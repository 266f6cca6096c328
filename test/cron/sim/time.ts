/** Virtual time for many nodes in one process: nothing waits, everything happens in one order. */
import type { Clock, Timer } from "../../../src/core/clock.js";

interface Event {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
  cancelled: boolean;
}

export class VirtualTime {
  now = 0;
  readonly random: () => number;
  readonly #events: Event[] = [];
  #order = 0;

  constructor(seed: number) {
    let state = (seed * 2_654_435_761) % 4_294_967_296;
    this.random = () => {
      state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e37_79b9) >>> 0;
      return ((state ^ (state >>> 13)) >>> 0) / 4_294_967_296;
    };
  }

  after(delayMs: number, run: () => void): Timer {
    const event: Event = { at: this.now + Math.max(0, delayMs), order: ++this.#order, run, cancelled: false };
    // Kept in order by insertion: most timers are short.
    let index = this.#events.length;
    while (index > 0 && this.#events[index - 1]!.at > event.at) index--;
    this.#events.splice(index, 0, event);
    return { cancel: () => void (event.cancelled = true) };
  }

  async run(untilMs: number): Promise<void> {
    for (;;) {
      // What was set off settles in microtasks: nothing here waits for anything else.
      await new Promise((resolve) => setImmediate(resolve));
      const event = this.#events[0];
      if (event === undefined || event.at > untilMs) break;
      this.#events.shift();
      if (event.cancelled) continue;
      this.now = event.at;
      event.run();
    }
    this.now = untilMs;
  }
}

/** One process: it can be stopped, go on, and die. Its wall clock can be set. */
export class VirtualNode {
  aheadMs = 0;
  readonly clock: Clock;
  readonly #time: VirtualTime;
  #state: "running" | "stopped" | "dead" = "running";
  #backlog: (() => void)[] = [];

  constructor(
    time: VirtualTime,
    readonly name: string,
  ) {
    this.#time = time;
    this.clock = {
      now: () => time.now,
      wall: () => EPOCH + time.now + this.aheadMs,
      boot: () => time.now,
      after: (delayMs, callback) => time.after(delayMs, () => this.deliver(callback)),
      random: time.random,
      uniqueId: () => Math.floor(time.random() * 2 ** 48).toString(16),
    };
  }

  get alive(): boolean {
    return this.#state !== "dead";
  }

  /** Something comes in from outside. A stopped process gets it when it goes on. */
  deliver(callback: () => void): void {
    if (this.#state === "running") callback();
    else if (this.#state === "stopped") this.#backlog.push(callback);
  }

  stop(): void {
    if (this.#state === "running") this.#state = "stopped";
  }

  resume(): void {
    if (this.#state !== "stopped") return;
    this.#state = "running";
    for (const callback of this.#backlog.splice(0)) this.#time.after(0, () => this.deliver(callback));
  }

  die(): void {
    this.#state = "dead";
    this.#backlog = [];
  }
}

export const EPOCH = Date.UTC(2026, 10, 16, 9);
