/** The flags of commands that campaign. */
import { hostname } from "node:os";
import { InvalidArgumentError, Option } from "commander";
import type { Command } from "commander";
import type { Backend } from "../seam/backend.js";
import { Election } from "../election/election.js";
import { backends } from "../backends/registry.js";
import { formatDuration } from "../terminal/duration.js";
import { durationOption } from "./options.js";

export interface CandidacyOptions {
  readonly nodeId?: string;
  readonly value?: string;
  readonly leaseDuration?: number;
  readonly retryPeriod?: number;
  readonly renewDeadline?: number;
  readonly maxTerm?: number;
  readonly allowUnfenced?: boolean;
  readonly priority?: number;
  readonly ineligible?: boolean;
  readonly minTerm?: number;
  readonly roster?: boolean;
}

/** `--last-will` of commands that lead, and what it says to the store. */
export interface LastWillOptions {
  readonly lastWill: "on" | "resident" | "off";
}

export function addLastWillOption(command: Command): Command {
  return command.addOption(
    new Option(
      "--last-will <how>",
      "give leadership back as soon as this process has died: by a shell that waits, by a resident process (faster), or not",
    )
      .choices(["on", "resident", "off"])
      .default("on"),
  );
}

export function lastWillOf({ lastWill }: LastWillOptions): boolean | "resident" {
  return lastWill === "resident" ? lastWill : lastWill === "on";
}

export function addIdOption(command: Command): Command {
  return command.option(
    "--id, --node-id <id>",
    "readable part of this candidate's id (env CONCLAVE_ID, INSTANCE_ID, POD_NAME; default the host's name)",
  );
}

export function addTimingOptions(command: Command): Command {
  return command
    .addOption(
      durationOption(
        "--ttl, --lease-duration",
        `how long leadership lasts without a renewal (default 10s${otherwise("ttlMs")})`,
      ),
    )
    .addOption(
      durationOption(
        "--retry, --retry-period",
        "longest pause between two looks while waiting (default ttl/5, at most 2s)",
      ),
    )
    .addOption(
      durationOption(
        "--renew-deadline",
        `stop acting this long after the last renewal (default ttl less 15 %${otherwise("renewDeadlineMs")})`,
      ),
    )
    .option(
      "--allow-unfenced",
      "accept a store without fencing tokens, where a partition can leave two leaders",
    );
}

/** Backends whose default is another one. */
function otherwise(name: "ttlMs" | "renewDeadlineMs"): string {
  const others = backends.flatMap(({ title, timing }) =>
    timing?.[name] === undefined ? [] : [{ title, ms: timing[name] }],
  );
  return others.map(({ title, ms }) => `; ${title} ${formatDuration(ms)}`).join("");
}

/** Who leads next, as candidates agree on it by their roster. `observers`: candidates may also stand there without ever leading. */
export function addStandingOptions(command: Command, observers: boolean): Command {
  addPriorityOption(command).addOption(
    durationOption(
      "--min-term",
      "lead this long before handing over to a candidate of a higher priority (default ten ttls)",
    ),
  );
  if (observers) command.option("--ineligible", "be on the roster of candidates, and never be elected");
  return command.option(
    "--roster",
    "be on the roster of candidates, which the page shows; those with --priority, --min-term or --ineligible are",
  );
}

function addPriorityOption(command: Command): Command {
  const priority = new Option(
    "--priority <number>",
    "preferred over candidates with a lower one (default 0)",
  );
  return command.addOption(
    priority.argParser((text: string) => {
      if (/^-?[0-9]{1,6}$/.test(text)) return Number(text);
      throw new InvalidArgumentError("Write a whole number.");
    }),
  );
}

export function addValueOption(command: Command): Command {
  return command.option(
    "--value <text>",
    "what observers see while this one leads (default the candidate's id)",
  );
}

/** Flag first, then the environment, then the host's name. An empty variable is one that is not set. */
export function candidateId(flag: string | undefined): string {
  const { CONCLAVE_ID, INSTANCE_ID, POD_NAME } = process.env;
  return flag ?? (CONCLAVE_ID || INSTANCE_ID || POD_NAME || hostname() || "candidate");
}

/** Candidates of the command line can be asked to resign, honour pauses and write their terms down, where the store keeps records. */
export function operated({ records }: Backend): { readonly controls: boolean; readonly history: boolean } {
  return { controls: records !== undefined, history: records !== undefined };
}

/** A candidate as the flags say, on a backend that stays the caller's unless `closeBackend`. */
export function newCandidate(
  name: string,
  id: string,
  options: CandidacyOptions,
  backend: Backend,
  closeBackend = false,
): Election {
  return new Election({
    name,
    id,
    backend,
    closeBackend,
    value: options.value,
    ttlMs: options.leaseDuration,
    retryMs: options.retryPeriod,
    renewDeadlineMs: options.renewDeadline,
    maxTermMs: options.maxTerm,
    allowUnfenced: options.allowUnfenced,
    priority: options.priority,
    eligible: options.ineligible === true ? false : undefined,
    minTermMs: options.minTerm,
    roster: options.roster,
    ...operated(backend),
  });
}

/** A candidate on a backend that it closes; if the options are refused, at once. */
export async function openCandidate(
  name: string,
  id: string,
  options: CandidacyOptions,
  backend: Backend,
): Promise<Election> {
  try {
    return newCandidate(name, id, options, backend, true);
  } catch (error) {
    await backend[Symbol.asyncDispose]();
    throw error;
  }
}
