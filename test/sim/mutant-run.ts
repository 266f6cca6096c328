/** A rule broken in a copy of the compiled code, and the schedules that must notice. */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Edit, Mutant } from "./mutants.js";
import { Worker } from "./pool.js";
import type { Failure } from "./worker.js";

const FIRST_BATCH = 10;
const BATCH = 100;

/** Where the compiled code is, and what it needs besides. */
export interface Build {
  readonly directory: string;
  readonly modules: string;
}

export interface Verdict {
  readonly mutant: Mutant;
  /** Schedules run up to and including the one that caught it. */
  readonly seeds: number;
  readonly caught: Pick<Failure, "seed" | "store" | "rule"> | undefined;
  readonly problem?: string;
}

export async function tryMutant(mutant: Mutant, most: number, build: Build): Promise<Verdict> {
  const tree = await mkdtemp(join(tmpdir(), "conclave-mutant-"));
  let seeds = 0;
  try {
    await plant(mutant, tree, build);
    const worker = new Worker(join(tree, "test/sim/worker.js"));
    try {
      while (seeds < most) {
        const count = Math.min(seeds === 0 ? FIRST_BATCH : BATCH, most - seeds);
        const batch = {
          from: 1 + seeds,
          count,
          stores: mutant.stores,
          subject: mutant.subject ?? "election",
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
async function plant(mutant: Mutant, tree: string, { directory, modules }: Build): Promise<void> {
  await cp(join(directory, "src"), join(tree, "src"), { recursive: true });
  await cp(join(directory, "test/sim"), join(tree, "test/sim"), { recursive: true });
  await writeFile(join(tree, "package.json"), '{ "type": "module" }\n');
  await symlink(modules, join(tree, "node_modules"));
  for (const edit of mutant.edits) {
    const path = join(tree, edit.file);
    await writeFile(path, patch(await readFile(path, "utf8"), edit));
  }
}

/** The text with the edit made. Throws unless the text to replace occurs exactly once. */
export function patch(text: string, { file, find, replace }: Edit): string {
  const parts = text.split(find);
  if (parts.length !== 2) {
    throw new Error(`the text to replace occurs ${parts.length - 1} times in ${file}, not once: ${find}`);
  }
  return parts.join(replace);
}
