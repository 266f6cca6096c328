/** Giving a hold back: a few bounded attempts; what is not given back expires with its ttl. */
import type { Hold } from "../seam/backend.js";
import type { Clock } from "../seam/clock.js";
import { describe } from "../kit/errors.js";
import type { Reports } from "./reports.js";
import { Halt } from "../kit/stop.js";
import type { Timing } from "./timing.js";
import { lazyOptions, limited, sleep } from "../kit/wait.js";

const ATTEMPTS = 2;

export async function releaseHold(
  hold: Hold,
  context: { readonly clock: Clock; readonly timing: Timing; readonly events: Reports },
): Promise<void> {
  const { clock, events } = context;
  const { attemptMs } = context.timing;
  const never = new Halt();
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    try {
      await limited(clock, attemptMs, never, "releasing", (stop) => hold.release(lazyOptions(stop)));
      return;
    } catch (error) {
      events.log(
        "warn",
        `releasing term ${hold.token} failed: ${describe(error)}; its lease expires by itself`,
      );
      if (attempt === ATTEMPTS) events.emit("error", { error });
      else await sleep(clock, attemptMs / 4, never);
    }
  }
}
