/** Contests, fought and judged. Any store that processes can share can be raced with this. */
import { rmSync } from "node:fs";
import { judgeDirectory } from "./checker.js";
import type { Judgement } from "./checker.js";
import { fight } from "./nemesis.js";
import type { Contest } from "./nemesis.js";

/** A leader may lose its leadership just as the blow falls: some misses are no fault of the run. */
const SHARE = 0.95;

/**
 * Starts candidates as real processes, stops and kills whoever leads, and has
 * the history judged: two leaders at one instant, tokens out of order, stale
 * writes that were accepted. What was written down stays in `directory`, which
 * is emptied first; `judgeDirectory` judges it again.
 */
export async function race(directory: string, contests: readonly Contest[]): Promise<Judgement> {
  rmSync(directory, { recursive: true, force: true });
  const began = performance.now();
  await Promise.all(contests.map((contest) => fight(contest, directory)));
  const seconds = Math.round((performance.now() - began) / 1000);
  const sum = (kind: "stop" | "kill"): number =>
    contests.reduce((total, { faults }) => total + faults[kind], 0);
  const [stops, kills] = [sum("stop"), sum("kill")];
  const demands = {
    observations: 20 * (stops + kills),
    changes: Math.floor(SHARE * (stops + kills)),
    faults: { stop: Math.floor(SHARE * stops), kill: Math.floor(SHARE * kills) },
  };
  const { verdict, text } = judgeDirectory(directory, demands);
  return { verdict, text: `${text}\n${seconds} s, history in ${directory}` };
}
