/** A transfer to a candidate that is not there: how long nobody leads. */
import { setTimeout as pause } from "node:timers/promises";
import { show, summarize } from "../measure.js";
import type { Row } from "../measure.js";
import { Standing } from "./standing.js";

const ROUNDS = 10;
const BOUND_MS = 1_000;

export async function deadHeir(url: string): Promise<Row> {
  const standing = new Standing({ name: "dead-heir", backend: url, ttlMs: 10_000 });
  const times: number[] = [];
  try {
    let leader = standing.next();
    for (const id of ["a", "b", "c"]) await standing.join(id);
    for (let round = 0; round < ROUNDS; round++) {
      const { term } = await leader;
      await pause(150);
      leader = standing.next();
      const asked = performance.now();
      const done = term.transfer("nobody-0a1b2c3d4e5f60", { timeoutMs: BOUND_MS });
      times.push((await leader).at - asked);
      await done;
    }
  } finally {
    await standing.close();
  }
  return {
    what: `transfer to a dead candidate, timeoutMs ${BOUND_MS}: somebody leads after`,
    result: show(summarize(times)),
  };
}
