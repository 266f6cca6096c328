/** The watchdog of the moment: the one that lives, or a new one. */
import { watchdogEnvironment } from "./environment.js";
import { Guard } from "./guard.js";

export class GuardRoom {
  #guard: Guard | undefined;
  #opening: Promise<Guard> | undefined;

  /** Processes that must be dead before nobody acts for this candidate. */
  get pids(): readonly number[] {
    return this.#guard?.pid === undefined ? [] : [this.#guard.pid];
  }

  /** Whether a watchdog lives. */
  get manned(): boolean {
    return this.#guard?.alive === true;
  }

  /** A watchdog that lives. */
  async ready(): Promise<Guard> {
    if (this.#guard?.alive === true) return this.#guard;
    this.#opening ??= Guard.open(watchdogEnvironment(process.env)).finally(() => (this.#opening = undefined));
    return (this.#guard = await this.#opening);
  }

  /** Lets the watchdog go, when nothing of any command lives. */
  async close(): Promise<void> {
    await this.#guard?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
