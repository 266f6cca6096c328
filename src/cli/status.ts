import type { Command } from "commander";
import { Election } from "../election/election.js";
import { systemClock } from "../kit/clock.js";
import { describe } from "../kit/errors.js";
import type { Leader } from "../seam/backend.js";
import { EXIT, UsageError } from "../terminal/failure.js";
import { errorLine, leaderLine } from "../terminal/lines.js";
import { output } from "../terminal/output.js";
import { redact } from "../terminal/secrets.js";
import { tableLines } from "../terminal/table.js";
import { stopOnSignals } from "./signals.js";
import { addStoreOptions, listed, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";

interface StatusOptions extends StoreOptions {
  readonly json?: boolean;
}

/** One election, asked once. */
interface Answer {
  readonly name: string;
  readonly leader: Leader | null;
  /** Why it could not be asked. */
  readonly error?: unknown;
}

/** Elections asked at a time. */
const AT_ONCE = 16;

const HELP = `
Examples:
  $ conclave status
  $ conclave status nightly-bill mailer --json
  $ conclave status --lock-dir /var/lib/billing

Asks once and ends; "conclave observe --watch" goes on.
Exit codes: 0 every election was asked; 2 bad usage; 3 the store, or an election in it, could not be asked; 4 any other fault.`;

export function addStatus(program: Command, done: (code: number) => void): void {
  const command = program
    .command("status")
    .summary("list the elections and who leads them")
    .description("Lists the elections of a store and who leads each at this moment.")
    .argument("[NAME...]", "the elections; all that the store lists if none is named");
  addStoreOptions(command)
    .option("--json", "one JSON object a line: event, at, election, candidate, token, value")
    .addHelpText("after", HELP)
    .action(async (names: readonly string[], options: StatusOptions) => done(await status(names, options)));
}

async function status(names: readonly string[], options: StatusOptions): Promise<number> {
  if (new Set(names).size !== names.length) throw new UsageError("the same election is named twice");
  const store = await openStore(options);
  await using _backend = store.backend;
  using stop = stopOnSignals();
  const { signal } = stop;
  const chosen = names.length > 0 ? names : await listed(store, signal);
  const elections = chosen.map((name) => new Election({ name, backend: store.backend, allowUnfenced: true }));
  const answers = await asked(elections, signal);
  const out = output();
  if (options.json === true) for (const answer of answers) out.line(JSON.stringify(lineOf(answer)));
  else if (answers.length === 0) out.line(`there is no election in ${store.where}`);
  else for (const line of table(answers)) out.line(line);
  return answers.some(({ error }) => error !== undefined) ? EXIT.unreachable : EXIT.ok;
}

async function asked(elections: readonly Election[], signal: AbortSignal): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let begin = 0; begin < elections.length; begin += AT_ONCE) {
    const some = elections.slice(begin, begin + AT_ONCE);
    answers.push(...(await Promise.all(some.map((election) => ask(election, signal)))));
  }
  return answers;
}

async function ask(election: Election, signal: AbortSignal): Promise<Answer> {
  const { name } = election;
  await using _election = election;
  try {
    return { name, leader: await election.leader({ signal }) };
  } catch (error) {
    if (signal.aborted) throw error;
    return { name, leader: null, error };
  }
}

function lineOf({ name, leader, error }: Answer): object {
  return error === undefined ? leaderLine(name, leader) : errorLine(name, null, null, error);
}

function table(answers: readonly Answer[]): string[] {
  const rows = answers.map(({ name, leader, error }) => ({
    election: name,
    leader: error === undefined ? (leader?.candidate ?? null) : undefined,
    token: leader?.token.toString() ?? null,
    since: leader?.since ?? null,
    trouble: error === undefined ? null : redact(describe(error)),
  }));
  return tableLines(rows, systemClock.wall(), {
    columns: process.stdout.isTTY ? process.stdout.columns || 80 : Infinity,
    rows: Infinity,
  });
}
