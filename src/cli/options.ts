import { InvalidArgumentError, Option } from "commander";
import type { Command } from "commander";
import { describe } from "../kit/errors.js";
import { parseDuration } from "../terminal/duration.js";
import { CONTAIN_CHOICES } from "../exec/containment-method.js";

export function durationOption(flags: string, description: string): Option {
  return new Option(`${flags} <duration>`, description).argParser((text: string) => {
    try {
      return parseDuration(text);
    } catch (error) {
      throw new InvalidArgumentError(describe(error));
    }
  });
}

export function countOption(flags: string, description: string, least: number, most: number): Option {
  return new Option(`${flags} <count>`, description).argParser((text: string) => {
    const count = /^[0-9]{1,6}$/.test(text) ? Number(text) : Number.NaN;
    if (count >= least && count <= most) return count;
    throw new InvalidArgumentError(`Write a whole number from ${least} to ${most}.`);
  });
}

/** For commands that run another: what it finds in its environment (exec/environment.ts), how it is contained (exec/containment-method.ts). */
export function addRunnerOptions(command: Command): Command {
  const passEnv = "do not withhold these variables from the command (a,b,…)";
  return command
    .addOption(new Option("--pass-env <names>", passEnv).argParser(names))
    .addOption(
      new Option("--contain <how>", "by what all processes of the command are ended")
        .choices(CONTAIN_CHOICES)
        .default(CONTAIN_CHOICES[0]),
    );
}

function names(text: string, before: readonly string[] | undefined): readonly string[] {
  const given = text.split(",");
  if (given.some((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))) {
    throw new InvalidArgumentError("Write names of environment variables, separated by commas.");
  }
  return [...(before ?? []), ...given];
}
