/** Keeps one live watchdog: starts a new one when the last has died. */
import { watchdogEnvironment } from "./environment.js";
import { WatchdogClient } from "./watchdog-client.js";
import type { ContainChoice, ContainmentMethod } from "./containment-method.js";

export class WatchdogPool {
  readonly #contain: ContainChoice;
  readonly #chosen: (method: ContainmentMethod) => void;
  #watchdog: WatchdogClient | undefined;
  #opening: Promise<WatchdogClient> | undefined;

  /** `chosen` is called with the containment method of each new watchdog. */
  constructor(contain: ContainChoice = "auto", chosen: (method: ContainmentMethod) => void = () => {}) {
    this.#contain = contain;
    this.#chosen = chosen;
  }

  /** Processes that must be dead before another candidate may act. */
  get pids(): readonly number[] {
    return this.#watchdog?.pids ?? [];
  }

  /** Whether a watchdog lives. */
  get hasWatchdog(): boolean {
    return this.#watchdog?.alive === true;
  }

  /** A watchdog that lives. */
  async ready(): Promise<WatchdogClient> {
    if (this.#watchdog?.alive === true) return this.#watchdog;
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return (this.#watchdog = await this.#opening);
  }

  async #open(): Promise<WatchdogClient> {
    const watchdog = await WatchdogClient.open(watchdogEnvironment(process.env), this.#contain);
    this.#chosen(watchdog.method);
    return watchdog;
  }

  /** Lets the watchdog go, when nothing of any command lives. */
  async close(): Promise<void> {
    await this.#watchdog?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
