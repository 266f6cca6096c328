/** How work takes what it is told: its orders, its signal, and whether it hears it. */
import { onAbort, sleep } from "../../kit/wait.js";
import type { SimClock } from "./clock.js";
import type { Scheduler } from "./scheduler.js";

export class Misbehaviour {
  /** What the work was told to do next. */
  #order: "throw" | "return" | undefined;
  #deafUntil = -Infinity;
  readonly #resting = new Set<() => void>();

  constructor(
    readonly scheduler: Scheduler,
    readonly clock: SimClock,
  ) {}

  order(order: "throw" | "return"): void {
    this.#order = order;
    for (const wake of [...this.#resting]) wake();
  }

  deafen(untilTime: number): void {
    this.#deafUntil = untilTime;
  }

  get deaf(): boolean {
    return this.scheduler.now < this.#deafUntil;
  }

  /** The order, if there is one; whoever asks obeys. */
  get ordered(): "throw" | "return" | undefined {
    return this.#order;
  }

  obeyed(): void {
    this.#order = undefined;
  }

  /** Sleeps until there is something to do: time, an order, or the signal, if it is heard. */
  async rest(signal: AbortSignal, ms: number): Promise<void> {
    const woken = new AbortController();
    const wake = (): void => woken.abort();
    this.#resting.add(wake);
    const unlink = onAbort(signal, () => void (this.deaf || wake()));
    await sleep(this.clock, ms, woken.signal);
    unlink();
    this.#resting.delete(wake);
  }
}
