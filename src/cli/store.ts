/** The flags that say where elections live, shared by all commands. */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Command } from "commander";
import { openDirectory } from "../backends/file/index.js";
import { fileOptions } from "../backends/file/url.js";
import { openBackend, rooms } from "../backends/open.js";
import type { Backend } from "../core/backend.js";
import { UsageError } from "./failure.js";
import { rememberSecrets, showUrl } from "./secrets.js";

export interface StoreOptions {
  readonly backend?: string;
  readonly lockDir?: string;
}

export interface Store {
  readonly backend: Backend;
  /** For people; no secrets in it. */
  readonly where: string;
}

export function addStoreOptions(command: Command): Command {
  const examples = rooms.map(({ example }) => example).join(", ");
  return command
    .option("--backend <url>", `where elections live: ${examples} (env CONCLAVE_BACKEND; default file:)`)
    .option("--lock-dir <dir>", "files in this directory; the same as --backend file:///dir");
}

/** Opens what the flags or the environment name. What cannot be used is refused here, before anyone stands. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const url = backendUrl(options);
  if (url.protocol !== "file:") return { backend: await openBackend(url), where: showUrl(url) };
  const chosen = fileOptions(url);
  const where = await openDirectory(chosen);
  const remark = chosen.directory === undefined ? " (the default directory)" : "";
  return { backend: await openBackend(url), where: `${where}${remark}` };
}

function backendUrl(options: StoreOptions): URL {
  const { lockDir } = options;
  if (lockDir !== undefined) {
    if (options.backend !== undefined)
      throw new UsageError("--lock-dir and --backend both say where: give one");
    if (lockDir === "" || resolve(lockDir) === resolve("/"))
      throw new UsageError("--lock-dir must name a directory of its own");
    return pathToFileURL(resolve(lockDir));
  }
  const text = options.backend ?? (process.env["CONCLAVE_BACKEND"] || "file:");
  rememberSecrets(text);
  const source = options.backend === undefined ? "CONCLAVE_BACKEND" : "--backend";
  const examples = rooms.map(({ example }) => example).join(", ");
  // Never repeated: it may hold a password.
  if (!URL.canParse(text)) throw new UsageError(`${source} is not a URL: write one like ${examples}`);
  if (/^file:(?!\/\/)./i.test(text))
    throw new UsageError(`${source}: write file:///directory with the whole path, or use --lock-dir`);
  return new URL(text);
}
