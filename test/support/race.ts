/** Contests, fought and judged. Any store with a URL can be raced with this. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../shape/sources.js";
import { judgeDirectory } from "./checker.js";
import { fight } from "./nemesis.js";
import type { Contest } from "./nemesis.js";

/** A leader may lose its office just as the blow falls: some misses are no fault of the run. */
const SHARE = 0.95;

/** The history stays in artifacts/race/<name>: it can be judged again after the checker has changed. */
export async function race(
  name: string,
  contests: readonly Omit<Contest, "directory">[],
): Promise<{ code: number; text: string }> {
  const directory = join(ROOT, "artifacts/race", name);
  rmSync(directory, { recursive: true, force: true });
  const began = performance.now();
  await Promise.all(contests.map((contest) => fight({ ...contest, directory })));
  const seconds = Math.round((performance.now() - began) / 1000);
  const sum = (kind: "stop" | "kill"): number =>
    contests.reduce((total, { faults }) => total + faults[kind], 0);
  const [stops, kills] = [sum("stop"), sum("kill")];
  const demands = {
    observations: 20 * (stops + kills),
    changes: Math.floor(SHARE * (stops + kills)),
    faults: { stop: Math.floor(SHARE * stops), kill: Math.floor(SHARE * kills) },
  };
  const { code, text } = judgeDirectory(directory, demands);
  return { code, text: `${text}\n${seconds} s, history in artifacts/race/${name}` };
}
