import type { Command } from "commander";
import { Election } from "../core/election.js";
import { EXIT } from "./failure.js";
import { errorLine, leaderLine } from "./lines.js";
import { openLog } from "./log.js";
import { durationOption } from "./options.js";
import { output } from "./output.js";
import { stopOnSignals } from "./signals.js";
import { addStoreOptions, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";

interface ObserveOptions extends StoreOptions {
  readonly retryPeriod?: number;
  readonly json?: boolean;
}

const HELP = `
Examples:
  $ conclave observe nightly-bill
  $ conclave observe nightly-bill --json | while read -r line; do echo "$line"; done

The first line is the present state, then comes every change that is seen; a fast change can be skipped.
Faults of the store are reported and waited out. Ctrl-C or SIGTERM ends it with exit code 0.
Exit codes: 0 stopped on request; 2 bad usage.`;

export function addObserve(program: Command, done: (code: number) => void): void {
  const command = program
    .command("observe")
    .summary("follow who leads")
    .description("Follows who leads, without standing.")
    .argument("<NAME>", "the election");
  addStoreOptions(command)
    .addOption(
      durationOption(
        "--retry, --retry-period",
        "longest silence before the store is asked again (default 2s)",
      ),
    )
    .option("--json", "one JSON object a line: event, at, election, candidate, token, value")
    .addHelpText("after", HELP)
    .action(async (name: string, options: ObserveOptions) => done(await observe(name, options)));
}

async function observe(name: string, options: ObserveOptions): Promise<number> {
  const store = await openStore(options);
  await using _backend = store.backend;
  await using election = new Election({ name, backend: store.backend, retryMs: options.retryPeriod });
  const log = openLog(options.json === true ? "json" : "text", output(), name);
  using stop = stopOnSignals();
  log.note(`elections live in ${store.where}`);
  election.on("error", ({ error }) => log.line(errorLine(name, null, null, error)));
  for await (const leader of election.observe({ signal: stop.signal })) log.line(leaderLine(name, leader));
  return EXIT.ok;
}
