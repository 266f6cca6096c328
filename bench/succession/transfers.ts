/** A hundred transfers between three candidates, each in turn with a plain resign. */
import { setTimeout as pause } from "node:timers/promises";
import { show, summarize } from "../measure.js";
import type { Row } from "../measure.js";
import { Standing } from "./standing.js";

const ROUNDS = 100;
/** Long enough for the one that has just led to stand again. */
const REST_MS = 150;

export async function transfers(url: string): Promise<Row> {
  const standing = new Standing({ name: "transfers", backend: url, ttlMs: 10_000 });
  const [transferred, resigned]: [number[], number[]] = [[], []];
  let others = 0;
  try {
    let leader = standing.next();
    for (const id of ["a", "b", "c"]) await standing.join(id);
    for (let round = 0; round < 2 * ROUNDS; round++) {
      const { id, term } = await leader;
      await pause(REST_MS);
      const waiting = standing.ids.filter((other) => other !== id);
      const heir = waiting[(round >> 1) % waiting.length]!;
      leader = standing.next();
      const asked = performance.now();
      const done = round % 2 === 0 ? term.transfer(heir) : term.resign();
      const next = await leader;
      await done;
      (round % 2 === 0 ? transferred : resigned).push(next.at - asked);
      if (round % 2 === 0 && next.id !== heir) others++;
    }
  } finally {
    await standing.close();
  }
  return {
    what: `transfer to one of two that wait, ttl 10 s: others led in ${others} of ${ROUNDS}`,
    result: show(summarize(transferred)),
    beside: `resign(), in turns with it: ${show(summarize(resigned))}`,
  };
}
