/** The flags that say where elections live, shared by all commands. What they are called, each backend says itself. */
import type { Command } from "commander";
import { ownLeaderEach, separateReplicas } from "../backends/default-store.js";
import { backends, examples } from "../backends/registry.js";
import { systemClock } from "../kit/clock.js";
import { isConclaveError } from "../kit/errors.js";
import { bounded } from "../kit/wait.js";
import { whereOf } from "../kit/where.js";
import { openBackend, schemeOf } from "../open.js";
import { BOTH_SCHEME, bothUrls } from "../both/url.js";
import type { Backend } from "../seam/backend.js";
import type { BackendEntry, OpenOptions, StoreFlag, StoreFlags } from "../seam/entry.js";
import { UsageError } from "../terminal/failure.js";
import { output } from "../terminal/output.js";
import { redact, rememberSecrets } from "../terminal/secrets.js";
import { importModules, locate } from "./import.js";

/** Longest that a list of elections may take. */
const LIST_MS = 10_000;

export interface StoreOptions {
  readonly backend?: string;
  /** Modules that register backends of their own. */
  readonly import?: readonly string[];
  /** Flags of single backends (see {@link BackendEntry.flags}), under the names that commander gives them. */
  readonly [flag: string]: unknown;
}

export interface Store {
  readonly backend: Backend;
  /** For people; no secrets in it. */
  readonly where: string;
}

export function addStoreOptions(command: Command): Command {
  command
    .option(
      "--backend <url>",
      `where elections live: ${examples()} (env CONCLAVE_BACKEND; default file:, this machine only)`,
    )
    .option(
      "--import <module>",
      "load this module first: one that registers a backend of your own (may be given several times)",
      (module: string, before: readonly string[] = []) => [...before, module],
    );
  for (const flag of backends.flatMap(({ flags }) => flags?.where ?? [])) addFlag(command, flag);
  return command;
}

/** Flags by which single backends name the election. */
export function addElectionFlags(command: Command): Command {
  for (const flag of electionFlags()) addFlag(command, flag);
  return command;
}

/** What those flags say. */
export function electionsNamed(options: StoreOptions): string[] {
  return electionFlags().flatMap((flag) => valueOf(options, flag) ?? []);
}

/** `refuse`: commands that run another one. If each replica had a store of its own, all of them would run it. */
export type WithoutStore = "refuse" | "warn";

/** Opens what the flags or the environment name. What cannot be used is refused here, before anyone campaigns. */
export async function openStore(
  options: StoreOptions,
  open: OpenOptions = {},
  withoutStore: WithoutStore = "warn",
): Promise<Store> {
  const url = backendUrl(options);
  if (url === undefined) checkDefault(withoutStore);
  const modules = options.import ?? [];
  await importModules(modules);
  const backend = await openBackend(url ?? "file:", { ...open, imports: modules.map(locate) });
  // Candidates of the command line have no logger: what a backend warns of would be heard by nobody.
  if (options["log"] !== "none")
    backend.onWarning?.((warning) => output(process.stderr).line(`conclave: WARNING: ${redact(warning)}`));
  const where = whereOf(backend) ?? backend.name;
  return { backend, where: url === undefined ? `${where}, on this machine only` : where };
}

function checkDefault(withoutStore: WithoutStore): void {
  const sign = separateReplicas();
  if (sign === undefined) return;
  const message = `${ownLeaderEach(sign)}. Name a store that all replicas reach (--backend URL or CONCLAVE_BACKEND: ${examples()})`;
  if (withoutStore === "refuse")
    throw new UsageError(`${message}; if one machine is meant, say so with --backend file:`);
  output(process.stderr).line(
    `conclave: WARNING: ${message}, or say --backend file: if one machine is meant`,
  );
}

/** The elections of a store; more than can be listed is said on stderr. */
export async function listed({ backend, where }: Store, signal: AbortSignal): Promise<readonly string[]> {
  const { list } = backend;
  if (list === undefined) throw new UsageError("name the elections: this store cannot list them");
  const what = `listing the elections in ${where}`;
  const found = await bounded(systemClock, LIST_MS, signal, what, (limited) =>
    list.call(backend, { signal: limited }),
  );
  if (!found.complete)
    output(process.stderr).line(`there are more elections in ${where} than these ${found.names.length}`);
  return found.names;
}

/** The one place that the flags, or else the environment, name; `undefined`: they name none. */
export function backendUrl(options: StoreOptions): string | undefined {
  const { backend } = options;
  const flagged = backends.filter(({ flags }) =>
    flags?.where.some((flag) => valueOf(options, flag) !== undefined),
  );
  const given = [...(backend === undefined ? [] : ["--backend"]), ...flagged.map(flagNames)];
  if (given.length > 1) throw new UsageError(`${given.join(" and ")} all say where: give one`);
  const named =
    flagged[0] ?? backends.find(({ flags }) => flags?.election && valueOf(options, flags.election));
  if (backend === undefined && named?.flags !== undefined) return flagUrl(named.flags, options);
  const text = backend ?? (process.env["CONCLAVE_BACKEND"] || undefined);
  if (text === undefined) return undefined;
  rememberSecrets(text);
  if (schemeOf(text) === BOTH_SCHEME) bothUrls(text).forEach(rememberSecrets);
  return text;
}

function flagUrl(flags: StoreFlags, options: StoreOptions): string {
  try {
    return flags.url(Object.fromEntries(flags.where.map((flag) => [flag.name, valueOf(options, flag)])));
  } catch (error) {
    throw isConclaveError(error) && error.code === "invalid" ? new UsageError(error.message) : error;
  }
}

function flagNames({ flags }: BackendEntry): string {
  return (flags?.where ?? []).map(({ name }) => `--${name}`).join(" or ");
}

export function electionFlags(): StoreFlag[] {
  return backends.flatMap(({ flags }) => flags?.election ?? []);
}

function addFlag(command: Command, { name, argument, help }: StoreFlag): void {
  command.option(`--${name} <${argument}>`, help);
}

/** Under the name that commander gives it: `--lock-dir` is `lockDir`. */
function valueOf(options: StoreOptions, { name }: StoreFlag): string | undefined {
  const value = options[name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())];
  return typeof value === "string" ? value : undefined;
}
