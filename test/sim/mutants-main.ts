/**
 * npm run sim:mutants                  every rule broken in turn; the simulator must notice
 *                -- --only watchdog    those whose name contains this
 *                   --seeds 5000       within so many schedules
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ALL_MUTANTS } from "./all-mutants.js";
import { tryMutant } from "./mutant-run.js";
import type { Verdict } from "./mutant-run.js";

const BUILD = {
  directory: fileURLToPath(new URL("../../", import.meta.url)),
  modules: fileURLToPath(new URL("../../../node_modules", import.meta.url)),
};
const PARALLEL = 2;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { only: { type: "string", default: "" }, seeds: { type: "string", default: "5000" } },
  });
  const queue = ALL_MUTANTS.filter(({ name }) => name.includes(values.only));
  const most = Number(values.seeds);
  const verdicts: Verdict[] = [];
  const startedAt = performance.now();
  const work = async (): Promise<void> => {
    for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
      const verdict = await tryMutant(mutant, most, BUILD);
      verdicts.push(verdict);
      print(line(verdict, most));
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
  const escaped = verdicts.filter(({ caught }) => caught === undefined);
  const slowest = Math.max(0, ...verdicts.map(({ seeds }) => seeds));
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  print(
    `${verdicts.length} mutants, ${verdicts.length - escaped.length} caught (the slowest within ${slowest} schedules), ` +
      `${escaped.length} escaped, in ${seconds} s`,
  );
  return escaped.length === 0 && verdicts.length > 0 ? 0 : 1;
}

function line({ mutant, seeds, caught, problem }: Verdict, most: number): string {
  const name = mutant.name.padEnd(56);
  if (problem !== undefined) return `RED     ${name} ${problem}`;
  if (caught === undefined) return `ESCAPED ${name} not caught within ${most} schedules`;
  return `caught  ${name} after ${String(seeds).padStart(4)} schedules: ${caught.rule} (${caught.store}, seed ${caught.seed})`;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

process.exitCode = await main();
