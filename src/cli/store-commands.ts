/** Commands that single backends bring: `conclave <store> <command>`. What they do, each backend says itself. */
import type { Command } from "commander";
import { backends } from "../backends/registry.js";
import { isConclaveError } from "../kit/errors.js";
import type { StoreCommand } from "../seam/entry.js";
import { EXIT, UsageError } from "../terminal/failure.js";
import { output } from "../terminal/output.js";

export function addStoreCommands(program: Command, done: (code: number) => void): void {
  for (const { name, title, commands = [] } of backends) {
    if (commands.length === 0) continue;
    const store = program
      .command(name)
      .summary(`what only ${title} has`)
      .description(`Commands for ${title} alone.`);
    for (const command of commands) add(store, command, done);
  }
}

function add(store: Command, { name, help, flags, text }: StoreCommand, done: (code: number) => void): void {
  const command = store
    .command(name)
    .summary(help)
    .description(`${help[0]!.toUpperCase()}${help.slice(1)}.`);
  for (const flag of flags) command.option(`--${flag.name} <${flag.argument}>`, flag.help);
  command.action(async (values: Readonly<Record<string, string | undefined>>) => {
    try {
      for (const line of (await text(values)).split("\n")) output().line(line);
    } catch (error) {
      throw isConclaveError(error) && error.code === "invalid" ? new UsageError(error.message) : error;
    }
    done(EXIT.ok);
  });
}
