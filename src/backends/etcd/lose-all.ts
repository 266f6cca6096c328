/** The end of a lease, told to the keys on it. There may be thousands: then the event loop gets its turn in between. */
import type { Clock } from "../../seam/clock.js";
import type { CandidateKey } from "./candidate-key.js";

/** With more keys, terms learn of the end of their lease as its followers, and their keys after them, so many at once. */
const TOLD_AT_ONCE = 200;

/** Each key leaves `candidateKeys` when it is lost. Without a clock all are lost when this returns. */
export function loseAll(
  candidateKeys: ReadonlySet<CandidateKey>,
  why: string,
  clock: Clock | undefined,
): void {
  const many = candidateKeys.size > TOLD_AT_ONCE;
  for (const candidateKey of candidateKeys)
    if (!many || candidateKey.state !== "held") candidateKey.lose(why);
  if (many) loseHeld(candidateKeys, why, clock);
}

/** Terms that follow the lease were ended before. Those that left it while their work stops, or stand on two stores, learn of it here. */
function loseHeld(candidateKeys: ReadonlySet<CandidateKey>, why: string, clock: Clock | undefined): void {
  let lost = 0;
  for (const candidateKey of candidateKeys) {
    if (clock !== undefined && lost++ === TOLD_AT_ONCE)
      return void clock.after(0, () => loseHeld(candidateKeys, why, clock));
    candidateKey.lose(why);
  }
}
