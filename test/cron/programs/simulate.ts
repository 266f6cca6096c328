/** Arguments: first seed, how many. One line of JSON: what was run, and the first violation. */
import { simulateCron } from "../sim/world.js";
import type { SimOutcome } from "../sim/world.js";

const [from, count] = process.argv.slice(2).map(Number);
const total = { schedules: 0, runs: 0, repeats: 0, reported: 0, faults: 0 };
let failed: SimOutcome | undefined;
for (let seed = from!; seed < from! + count! && failed === undefined; seed++) {
  for (const mode of ["at-most-once", "at-least-once"] as const) {
    const outcome = await simulateCron(seed, mode);
    total.schedules++;
    for (const key of ["runs", "repeats", "reported", "faults"] as const) total[key] += outcome[key];
    if (outcome.violation !== undefined) failed ??= outcome;
  }
}
process.stdout.write(`${JSON.stringify({ ...total, failed })}\n`);
// What the virtual nodes still wait for never comes.
process.exit(0);
