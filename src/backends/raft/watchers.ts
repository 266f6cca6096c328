/** Questions that wait until an election changes. */
import type { Stop } from "../../kit/stop.js";
import { onAbort } from "../../kit/wait.js";
import type { Clock, Timer } from "../../seam/clock.js";

interface Waiting {
  readonly timer: Timer;
  end(): void;
}

export class Watchers {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<Waiting>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves with the next change, after so long, or when all are closed. `gone`: nobody waits any more. */
  wait(election: string, waitMs: number, gone: Stop): Promise<void> {
    return new Promise((resolve) => {
      if (gone.aborted) return resolve();
      const here = this.#waiting.get(election) ?? new Set();
      this.#waiting.set(election, here);
      const end = (): void => {
        waiting.timer.cancel();
        unlink();
        here.delete(waiting);
        if (here.size === 0 && this.#waiting.get(election) === here) this.#waiting.delete(election);
        resolve();
      };
      const waiting: Waiting = { timer: this.#clock.after(waitMs, () => end()), end };
      here.add(waiting);
      const unlink = onAbort(gone, end);
    });
  }

  wake(election: string): void {
    for (const { end } of [...(this.#waiting.get(election) ?? [])]) end();
  }

  close(): void {
    for (const election of [...this.#waiting.keys()]) this.wake(election);
  }
}
