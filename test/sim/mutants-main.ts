/**
 * npm run sim:mutants                  every rule broken in turn; the simulator must notice
 *                -- --only watchdog    those whose name contains this
 *                   --seeds 5000       within so many schedules
 */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { MUTANTS } from "./mutants.js";
import type { Edit, Mutant } from "./mutants.js";
import { Worker } from "./pool.js";
import type { Failure } from "./worker.js";

const BUILD = fileURLToPath(new URL("../../", import.meta.url));
const MODULES = fileURLToPath(new URL("../../../node_modules", import.meta.url));
const PARALLEL = 2;
const FIRST_BATCH = 10;
const BATCH = 100;

interface Verdict {
  readonly mutant: Mutant;
  /** Schedules run up to and including the one that caught it. */
  readonly seeds: number;
  readonly caught: Pick<Failure, "seed" | "store" | "rule"> | undefined;
  readonly problem?: string;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { only: { type: "string", default: "" }, seeds: { type: "string", default: "5000" } },
  });
  const queue = MUTANTS.filter(({ name }) => name.includes(values.only));
  const most = Number(values.seeds);
  const verdicts: Verdict[] = [];
  const startedAt = performance.now();
  const work = async (): Promise<void> => {
    for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
      const verdict = await tryMutant(mutant, most);
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

async function tryMutant(mutant: Mutant, most: number): Promise<Verdict> {
  const tree = await mkdtemp(join(tmpdir(), "conclave-mutant-"));
  let seeds = 0;
  try {
    await plant(mutant, tree);
    const worker = new Worker(join(tree, "test/sim/worker.js"));
    try {
      while (seeds < most) {
        const count = Math.min(seeds === 0 ? FIRST_BATCH : BATCH, most - seeds);
        const batch = {
          from: 1 + seeds,
          count,
          stores: mutant.stores,
          twiceEvery: 0,
          stopAtFirst: true,
          ignore: mutant.ignore,
        };
        const result = await worker.run(batch);
        seeds += result.seeds;
        const [failure] = result.failures;
        if (failure !== undefined) return { mutant, seeds, caught: failure };
      }
      return { mutant, seeds, caught: undefined };
    } finally {
      worker.stop();
    }
  } catch (error) {
    return {
      mutant,
      seeds,
      caught: undefined,
      problem: error instanceof Error ? error.message : String(error),
    };
  } finally {
    await rm(tree, { recursive: true, force: true });
  }
}

/** A copy of the compiled code with the rule broken. */
async function plant(mutant: Mutant, tree: string): Promise<void> {
  await cp(join(BUILD, "src"), join(tree, "src"), { recursive: true });
  await cp(join(BUILD, "test/sim"), join(tree, "test/sim"), { recursive: true });
  await writeFile(join(tree, "package.json"), '{ "type": "module" }\n');
  await symlink(MODULES, join(tree, "node_modules"));
  for (const edit of mutant.edits) await apply(edit, join(tree, edit.file));
}

async function apply({ file, find, replace }: Edit, path: string): Promise<void> {
  const parts = (await readFile(path, "utf8")).split(find);
  if (parts.length !== 2) {
    throw new Error(`the text to replace occurs ${parts.length - 1} times in ${file}, not once: ${find}`);
  }
  await writeFile(path, parts.join(replace));
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
