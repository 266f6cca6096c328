import type { Command } from "commander";
import type { Leader } from "../seam/backend.js";
import { Election } from "../election/election.js";
import { EXIT } from "../terminal/failure.js";
import { leaderLine } from "../terminal/lines.js";
import { output } from "../terminal/output.js";
import { stopOnSignals } from "./signals.js";
import { addStoreOptions, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";

interface LeaderOptions extends StoreOptions {
  readonly json?: boolean;
}

const HELP = `
Examples:
  $ conclave leader nightly-bill
  $ conclave leader nightly-bill --json --lock-dir /var/lib/billing
  $ if conclave leader nightly-bill >/dev/null; then echo "someone leads"; fi

Exit codes: 0 someone leads; 1 nobody leads; 2 bad usage; 3 the store could not be asked; 4 any other fault.`;

export function addLeader(program: Command, done: (code: number) => void): void {
  const command = program
    .command("leader")
    .summary("say who leads")
    .description("Says who leads at this moment, by the store.")
    .argument("<NAME>", "the election");
  addStoreOptions(command)
    .option("--json", "one JSON object: event, at, election, candidate, token, value")
    .addHelpText("after", HELP)
    .action(async (name: string, options: LeaderOptions) => done(await leader(name, options)));
}

async function leader(name: string, options: LeaderOptions): Promise<number> {
  const store = await openStore(options);
  await using _backend = store.backend;
  await using election = new Election({ name, backend: store.backend, allowUnfenced: true });
  using stop = stopOnSignals();
  const found = await election.leader({ signal: stop.signal });
  const out = output();
  const text =
    options.json === true ? JSON.stringify(leaderLine(name, found)) : sentence(name, found, store.where);
  out.line(text);
  return found === null ? EXIT.no : EXIT.ok;
}

function sentence(name: string, found: Leader | null, where: string): string {
  if (found === null) return `nobody leads "${name}" in ${where}`;
  return `${found.candidate} leads "${name}" with token ${found.token}${remarks(found)}`;
}

function remarks(found: Leader): string {
  const value = found.value === found.candidate ? "" : `, value ${JSON.stringify(found.value)}`;
  const since = validDate(found.since)
    ? `, since ${new Date(found.since).toISOString()} by its own clock`
    : "";
  return value + since;
}

function validDate(ms: number | undefined): ms is number {
  return ms !== undefined && Math.abs(ms) <= 8.64e15;
}
