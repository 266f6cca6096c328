/** The system's clock, except for the time of day. */
import { systemClock } from "../../src/kit/clock.js";
import type { Clock } from "../../src/seam/clock.js";

export function clockAhead(ms: number): Clock {
  return {
    now: () => systemClock.now(),
    wall: () => systemClock.wall() + ms,
    boot: () => systemClock.boot(),
    after: (...args) => systemClock.after(...args),
    random: () => systemClock.random(),
    uniqueId: () => systemClock.uniqueId(),
  };
}
