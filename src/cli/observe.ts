import type { Command } from "commander";
import { Election } from "../election/election.js";
import { EXIT, UsageError } from "../terminal/failure.js";
import { errorLine, leaderLine } from "../terminal/lines.js";
import { openLog } from "../terminal/log.js";
import { durationOption } from "./options.js";
import { isDumb, output } from "../terminal/output.js";
import { knownElections } from "./known-elections.js";
import { stopOnSignals } from "./signals.js";
import { addStoreOptions, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";
import { watchTable } from "./watch.js";

interface ObserveOptions extends StoreOptions {
  readonly retryPeriod?: number;
  readonly json?: boolean;
  readonly watch?: boolean;
}

const HELP = `
Examples:
  $ conclave observe nightly-bill
  $ conclave observe nightly-bill --json | while read -r line; do echo "$line"; done
  $ conclave observe --watch nightly-bill mailer
  $ conclave observe --watch                       all elections of the store

The first line is the present state, then comes every change that is seen; a fast change can be skipped.
With --watch one table is drawn again in place; without a terminal that can do that, lines are printed all the same.
Faults of the store are reported and waited out. Ctrl-C or SIGTERM ends it with exit code 0.
Exit codes: 0 stopped on request; 2 bad usage; 3 the store could not be opened; 4 any other fault, or output was lost.`;

export function addObserve(program: Command, done: (code: number) => void): void {
  const command = program
    .command("observe")
    .summary("follow who leads")
    .description("Follows who leads, without campaigning.")
    .argument(
      "[NAME...]",
      "the elections; with --watch, all of the store, as `conclave list` has them, if none is named",
    );
  addStoreOptions(command)
    .addOption(
      durationOption(
        "--retry, --retry-period",
        "longest silence before the store is asked again (default 2s)",
      ),
    )
    .option("--watch", "one table, drawn again: election, leader, token, since, changes")
    .option("--json", "one JSON object a line: event, at, election, candidate, token, value")
    .addHelpText("after", HELP)
    .action(async (names: readonly string[], options: ObserveOptions) => done(await observe(names, options)));
}

async function observe(names: readonly string[], options: ObserveOptions): Promise<number> {
  if (names.length === 0 && options.watch !== true)
    throw new UsageError("missing required argument 'NAME' (only --watch can do without)");
  if (new Set(names).size !== names.length) throw new UsageError("the same election is named twice");
  const store = await openStore(options);
  await using _backend = store.backend;
  using stop = stopOnSignals();
  const { signal } = stop;
  const retryMs = options.retryPeriod;
  const chosen = names.length > 0 ? names : await knownElections(store, signal);
  if (options.watch === true && options.json !== true && process.stdout.isTTY && !isDumb()) {
    output().line(`elections live in ${store.where}`);
    let known = chosen;
    const all = async (): Promise<readonly string[]> => {
      // A store that cannot be asked now is asked again with the next drawing.
      if (names.length === 0) known = await knownElections(store, signal).catch(() => known);
      return known;
    };
    await watchTable({ store, names: all, retryMs, terminal: process.stdout, signal });
    return EXIT.ok;
  }
  const log = openLog(options.json === true ? "json" : "text", output(), "conclave");
  log.note(`elections live in ${store.where}`);
  if (chosen.length === 0) throw new UsageError(`there is no election in ${store.where} yet: name one`);
  // All of them first: a name or a duration that is refused is bad usage, and nothing is followed.
  const elections = chosen.map(
    (name) => new Election({ name, backend: store.backend, retryMs, allowUnfenced: true }),
  );
  const followed = await Promise.allSettled(elections.map((election) => lines(election, options, signal)));
  // One that cannot be followed does not end the others.
  for (const one of followed) if (one.status === "rejected" && !signal.aborted) throw one.reason;
  return EXIT.ok;
}

async function lines(election: Election, options: ObserveOptions, signal: AbortSignal): Promise<void> {
  await using _election = election;
  const { name } = election;
  const log = openLog(options.json === true ? "json" : "text", output(), name);
  election.on("error", ({ error }) => log.line(errorLine(name, null, null, error)));
  try {
    for await (const leader of election.observe({ signal })) log.line(leaderLine(name, leader));
  } catch (error) {
    log.line(errorLine(name, null, null, error));
    throw error;
  }
}
