/** How long the command line takes to begin: beside Node, which has nothing to do. Taken in turns, so that both see the same machine. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { show, summarize } from "../measure.js";
import type { Bench, Summary } from "../measure.js";

const RUNS = 60;
const CLI = join(process.cwd(), "dist/cli/main.js");
/** Nothing is asked of a store: what is measured is loading. */
const COMMANDS: readonly (readonly [what: string, args: readonly string[]])[] = [
  ["node -e 0", ["-e", "0"]],
  ["conclave --version", [CLI, "--version"]],
  ["conclave --help", [CLI, "--help"]],
];

function once(args: readonly string[]): number {
  const began = performance.now();
  const { status } = spawnSync(process.execPath, args, { stdio: "ignore" });
  if (status !== 0) throw new Error(`${args.join(" ")} ended with ${String(status)}`);
  return performance.now() - began;
}

function measured(): Summary[] {
  const times = COMMANDS.map((): number[] => []);
  for (const [, args] of COMMANDS) once(args);
  for (let run = 0; run < RUNS; run++)
    for (const [i, [, args]] of COMMANDS.entries()) times[i]!.push(once(args));
  return times.map(summarize);
}

const bench: Bench = async function* () {
  const [node, ...ours] = measured();
  for (const [i, summary] of ours.entries()) {
    const ratio = (summary.median / node!.median).toFixed(2);
    yield {
      what: COMMANDS[i + 1]![0],
      result: `${ratio} times node -e 0; ${show(summary)}`,
      beside: show(node!),
    };
  }
};
export default bench;
