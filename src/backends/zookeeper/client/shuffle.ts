import type { Clock } from "../../../seam/clock.js";

/** The same elements in a random order. */
export function shuffled<T>(list: readonly T[], clock: Pick<Clock, "random">): T[] {
  const left = [...list];
  const drawn: T[] = [];
  while (left.length > 0) drawn.push(...left.splice(Math.floor(clock.random() * left.length), 1));
  return drawn;
}
