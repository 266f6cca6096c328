/** Releasing a hold: a few bounded attempts. What is not released expires with its ttl. */
import { describe } from "../kit/errors.js";
import { StopSource } from "../kit/stop.js";
import { bounded, sleep } from "../kit/wait.js";
import type { Heir, Hold } from "../seam/backend.js";
import type { Clock } from "../seam/clock.js";
import type { Reports } from "./reports.js";
import type { Timing } from "./timing.js";

/** Whose hold it is. */
export interface Releasing {
  readonly clock: Clock;
  readonly timing: Timing;
  readonly events: Reports;
}

/** Never rejects. `attempts`: one where somebody waits for the answer to another question, as after a failed grant. */
export async function releaseHold(hold: Hold, owner: Releasing, attempts: 1 | 2, heir?: Heir): Promise<void> {
  const { clock, events } = owner;
  const { attemptMs } = owner.timing;
  const never = new StopSource();
  for (let attempt = 1; attempt <= attempts; attempt++) {
    try {
      await bounded(clock, attemptMs, never, "releasing", (signal) => hold.release({ signal, heir }));
      return;
    } catch (error) {
      events.log(
        "warn",
        `releasing token ${hold.token} failed: ${describe(error)}; its lease expires by itself`,
      );
      if (attempt < attempts) await sleep(clock, attemptMs / 4, never);
      else events.emit("error", { error });
    }
  }
}
