/** Runs one plan. */
import { timetableOf } from "./cron-plan.js";
import type { Plan } from "./plan.js";
import type { SimResult, SimulateOptions } from "./simulation.js";
import { World } from "./world.js";

export async function simulate(plan: Plan, options: SimulateOptions = {}): Promise<SimResult> {
  const own = options.elect !== undefined || options.store !== undefined;
  const scheduled = plan.cron && !own ? plan.cron : undefined;
  const timetable = scheduled && (await timetableOf(scheduled));
  return new World(plan, options, timetable).run();
}
