/** The watchdog of the moment: the one that lives, or a new one. */
import { watchdogEnvironment } from "./environment.js";
import { Guard } from "./guard.js";
import type { ContainChoice, Means } from "./means.js";

export class GuardRoom {
  readonly #contain: ContainChoice;
  readonly #chosen: (means: Means) => void;
  #guard: Guard | undefined;
  #opening: Promise<Guard> | undefined;

  /** `chosen` is called with the means by which each new watchdog contains its commands. */
  constructor(contain: ContainChoice = "auto", chosen: (means: Means) => void = () => {}) {
    this.#contain = contain;
    this.#chosen = chosen;
  }

  /** Processes that must be dead before nobody acts for this candidate. */
  get pids(): readonly number[] {
    return this.#guard?.pids ?? [];
  }

  /** Whether a watchdog lives. */
  get manned(): boolean {
    return this.#guard?.alive === true;
  }

  /** A watchdog that lives. */
  async ready(): Promise<Guard> {
    if (this.#guard?.alive === true) return this.#guard;
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return (this.#guard = await this.#opening);
  }

  async #open(): Promise<Guard> {
    const guard = await Guard.open(watchdogEnvironment(process.env), this.#contain);
    this.#chosen(guard.means);
    return guard;
  }

  /** Lets the watchdog go, when nothing of any command lives. */
  async close(): Promise<void> {
    await this.#guard?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
