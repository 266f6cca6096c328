/** A preferred candidate that restarts every two seconds: how often leadership changes because of it. */
import { setTimeout as pause } from "node:timers/promises";
import type { Row } from "../measure.js";
import { Standing } from "./standing.js";

const TTL_MS = 2_000;
const MIN_TERM_MS = 8_000;
const UP_MS = 5_000;
const DOWN_MS = 500;
const FOR_MS = 40_000;

export async function restarts(url: string): Promise<Row> {
  const standing = new Standing({ name: "restarts", backend: url, ttlMs: TTL_MS, minTermMs: MIN_TERM_MS });
  let starts = 0;
  try {
    const leader = standing.next();
    await standing.join("sitting", { priority: 0 });
    await leader;
    const until = performance.now() + FOR_MS;
    while (performance.now() < until) {
      await standing.join("preferred", { priority: 10 });
      starts++;
      await pause(UP_MS);
      await standing.leave("preferred");
      await pause(DOWN_MS);
    }
  } finally {
    await standing.close();
  }
  const taken = standing.elected.filter(({ id }) => id === "preferred").length;
  return {
    what: `preferred candidate restarted ${starts} times in ${FOR_MS / 1_000} s, minTermMs ${MIN_TERM_MS}`,
    result: `${taken} handovers to it; at most ${Math.floor(FOR_MS / MIN_TERM_MS)} are allowed`,
  };
}
