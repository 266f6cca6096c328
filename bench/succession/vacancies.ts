/** A hundred vacancies with candidates of three priorities: whether the preferred one of those that wait leads next. */
import { setTimeout as pause } from "node:timers/promises";
import { show, summarize } from "../measure.js";
import type { Row } from "../measure.js";
import { Standing } from "./standing.js";

const ROUNDS = 100;
const TTL_MS = 2_000;
/** A line of the roster says whether its candidate leads; it is written, and read by the others, twice in a ttl each. */
const SETTLED_MS = 2_600;
const PRIORITIES: Readonly<Record<string, number>> = { low: 0, middle: 5, high: 10 };

export async function vacancies(url: string): Promise<Row> {
  // The sitting leader would hand over after minTermMs: here every change is a vacancy.
  const standing = new Standing({ name: "vacancies", backend: url, ttlMs: TTL_MS, minTermMs: 3_600_000 });
  const times: number[] = [];
  let preferred = 0;
  try {
    let leader = standing.next();
    for (const [id, priority] of Object.entries(PRIORITIES)) await standing.join(id, { priority });
    await leader;
    await pause(1_000); // until all are on the roster
    leader = Promise.resolve(standing.elected.at(-1)!);
    for (let round = 0; round < ROUNDS; round++) {
      const { id } = await leader;
      await pause(SETTLED_MS);
      const [best] = Object.keys(PRIORITIES)
        .filter((other) => other !== id)
        .sort((a, b) => PRIORITIES[b]! - PRIORITIES[a]!);
      leader = standing.next();
      const asked = performance.now();
      // It leaves: where there is no queue, one that resigns and stands again at once would be the preferred one itself.
      await standing.leave(id);
      const next = await leader;
      await standing.join(id, { priority: PRIORITIES[id]! });
      times.push(next.at - asked);
      if (next.id === best) preferred++;
    }
  } finally {
    await standing.close();
  }
  return {
    what: `vacancy with three priorities, ttl 2 s: the preferred one that waits led in ${preferred} of ${ROUNDS}`,
    result: show(summarize(times)),
  };
}
