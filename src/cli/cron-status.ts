import type { Command } from "commander";
import { readHistory } from "../cron/index.js";
import type { Run } from "../cron/index.js";
import { runFields } from "./cron-lines.js";
import { EXIT } from "../terminal/failure.js";
import { output } from "../terminal/output.js";
import { stopOnSignals } from "./signals.js";
import { addStoreOptions, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";

interface StatusOptions extends StoreOptions {
  readonly json?: boolean;
}

const HELP = `
Examples:
  $ conclave cron status call-list
  $ conclave cron status call-list --json --lock-dir /var/lib/billing

Exit codes: 0 there is a history; 1 nobody has run this schedule yet; 2 bad usage; 3 store unreachable;
4 any other fault.`;

export function addCronStatus(cron: Command, done: (code: number) => void): void {
  const command = cron
    .command("status")
    .summary("the last runs of a schedule")
    .description("Shows how far a schedule has come and its last runs, by the store.")
    .argument("<NAME>", "the schedule");
  addStoreOptions(command)
    .option("--json", "one JSON object a run")
    .addHelpText("after", HELP)
    // Flags that `cron` knows too are parsed by it, wherever they are.
    .action(async (name: string, _options: StatusOptions, self: Command) =>
      done(await status(name, self.optsWithGlobals<StatusOptions>())),
    );
}

async function status(name: string, options: StatusOptions): Promise<number> {
  const store = await openStore(options);
  await using _backend = store.backend;
  using stop = stopOnSignals();
  const ledger = await readHistory(store.backend, name, stop.signal);
  const out = output();
  if (ledger === null) {
    if (options.json !== true) out.line(`nobody has run "${name}" yet, in ${store.where}`);
    return EXIT.no;
  }
  if (options.json === true) {
    for (const run of ledger.runs) out.line(JSON.stringify({ schedule: name, ...runFields(run) }));
    return EXIT.ok;
  }
  out.line(`"${name}" has dealt with everything up to ${new Date(ledger.cursor).toISOString()}`);
  for (const run of ledger.runs) out.line(row(run));
  return EXIT.ok;
}

function row(run: Run): string {
  const took = run.endedAt === null ? "" : `${Math.max(0, run.endedAt - run.startedAt)} ms`;
  const several = run.count === undefined ? "" : ` (${run.count} or more)`;
  const cells = [
    new Date(run.at).toISOString(),
    `${run.state}${several}`.padEnd(12),
    `attempt ${run.attempt}`,
    `token ${run.token}`,
    took.padStart(9),
    run.by,
    run.note ?? "",
  ];
  return cells.join("  ").trimEnd();
}
