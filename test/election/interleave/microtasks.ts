/**
 * Strikes between two microtasks. `async_hooks` tells before each promise
 * reaction that it is about to run; those that descend from the watched code are
 * counted, and at chosen counts a strike is made, synchronously. The count does
 * not depend on what else runs in the process.
 */
import { AsyncLocalStorage, createHook } from "node:async_hooks";

const watched = new AsyncLocalStorage<Microtasks>();
const hook = createHook({ before: () => watched.getStore()?.step() });

export type Strikes = ReadonlyMap<number, () => void>;

export class Microtasks {
  /** Microtasks of the watched code so far. */
  count = 0;
  /** What strikes threw. */
  readonly errors: unknown[] = [];
  readonly #strikes: Strikes;
  #counting = true;

  constructor(strikes: Strikes) {
    this.#strikes = strikes;
  }

  /** Runs `body`, and whatever it sets off, under watch. */
  watch<T>(body: () => T): T {
    hook.enable();
    return watched.run(this, body);
  }

  /** From here on nothing is counted, and nobody strikes. */
  end(): void {
    this.#counting = false;
    hook.disable();
  }

  /** A microtask is about to run. Nothing may be thrown here: it would end the process. */
  step(): void {
    if (!this.#counting) return;
    const strike = this.#strikes.get(this.count++);
    try {
      strike?.();
    } catch (error) {
      this.errors.push(error);
    }
  }
}
