/** The flags that say where elections live, shared by all commands. */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Command } from "commander";
import { openDirectory } from "../backends/file/index.js";
import { fileOptions } from "../backends/file/url.js";
import { openBackend, rooms } from "../open.js";
import type { OpenOptions } from "../open.js";
import type { Backend } from "../seam/backend.js";
import { UsageError } from "../terminal/failure.js";
import { importModules } from "./import.js";
import { rememberSecrets, showUrl } from "../terminal/secrets.js";

export interface StoreOptions {
  readonly backend?: string;
  readonly lockDir?: string;
  readonly kubeconfig?: string;
  readonly leaseLockNamespace?: string;
  /** Names the election, and by that the store too. */
  readonly leaseLockName?: string;
  /** Modules that register backends of their own. */
  readonly import?: readonly string[];
}

export interface Store {
  readonly backend: Backend;
  /** For people; no secrets in it. */
  readonly where: string;
  /** Of the elections, if they live in files. */
  readonly directory?: string;
}

export function addStoreOptions(command: Command): Command {
  const examples = rooms.map(({ example }) => example).join(", ");
  command
    .option("--backend <url>", `where elections live: ${examples} (env CONCLAVE_BACKEND; default file:)`)
    .option("--lock-dir <dir>", "files in this directory; the same as --backend file:///dir")
    .option(
      "--import <module>",
      "load this module first: one that registers a backend of your own (may be given several times)",
      (module: string, before: readonly string[] = []) => [...before, module],
    );
  if (!hasKubernetes()) return command;
  // The names that operators know from other tools.
  return command
    .option("--kubeconfig <path>", "Kubernetes: the configuration to use")
    .option("--lease-lock-namespace <namespace>", "Kubernetes: where the Lease lives");
}

export function hasKubernetes(): boolean {
  return rooms.some(({ schemes }) => schemes.includes("kubernetes"));
}

/** Opens what the flags or the environment name. What cannot be used is refused here, before anyone stands. */
export async function openStore(options: StoreOptions, open: OpenOptions = {}): Promise<Store> {
  const url = backendUrl(options);
  await importModules(options.import ?? []);
  if (!url.startsWith("file:")) return { backend: await openBackend(url, open), where: showUrl(url) };
  const backend = await openBackend(url, open);
  const chosen = fileOptions(new URL(url));
  const where = await openDirectory(chosen);
  const remark = chosen.directory === undefined ? " (the default directory)" : "";
  return { backend, where: `${where}${remark}`, directory: where };
}

/** The one place that the flags, or else the environment, name. */
export function backendUrl(options: StoreOptions): string {
  const { backend, lockDir, kubeconfig, leaseLockNamespace } = options;
  const named = {
    "--backend": backend,
    "--lock-dir": lockDir,
    "--kubeconfig or --lease-lock-namespace": kubeconfig ?? leaseLockNamespace,
  };
  const given = Object.entries(named).flatMap(([flag, value]) => (value === undefined ? [] : [flag]));
  if (given.length > 1) throw new UsageError(`${given.join(" and ")} all say where: give one`);
  if (lockDir !== undefined) return directoryUrl(lockDir);
  if (backend === undefined && (options.leaseLockName ?? kubeconfig ?? leaseLockNamespace) !== undefined) {
    return kubernetesUrl(options);
  }
  const text = backend ?? (process.env["CONCLAVE_BACKEND"] || "file:");
  rememberSecrets(text);
  return text;
}

function directoryUrl(directory: string): string {
  if (directory === "" || resolve(directory) === resolve("/")) {
    throw new UsageError("--lock-dir must name a directory of its own");
  }
  return pathToFileURL(resolve(directory)).href;
}

function kubernetesUrl({ kubeconfig, leaseLockNamespace }: StoreOptions): string {
  const url = new URL(`kubernetes:///${encodeURIComponent(leaseLockNamespace ?? "")}`);
  if (kubeconfig !== undefined) url.searchParams.set("kubeconfig", resolve(kubeconfig));
  return url.href;
}
