/** Modules of the user that are loaded before a store is opened: they register backends (see `conclave/backend`). */
import { createRequire } from "node:module";
import { isAbsolute, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { describe } from "../kit/errors.js";
import { UsageError } from "../terminal/failure.js";

export async function importModules(modules: readonly string[]): Promise<void> {
  for (const module of modules) {
    try {
      await import(locate(module));
    } catch (error) {
      throw new UsageError(`--import ${module}: ${describe(error)}`);
    }
  }
}

/** A path from here, or a package that is installed here. */
export function locate(module: string): string {
  if (module.startsWith("file:")) return module;
  if (module.startsWith(".") || isAbsolute(module)) return pathToFileURL(resolve(module)).href;
  return pathToFileURL(createRequire(join(process.cwd(), "conclave")).resolve(module)).href;
}
