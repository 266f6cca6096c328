import type { Command } from "commander";
import { readHistory } from "../control/history.js";
import type { TermHistory } from "../control/history.js";
import type { Election } from "../election/election.js";
import { systemClock } from "../kit/clock.js";
import { describe } from "../kit/errors.js";
import type { Leader } from "../seam/backend.js";
import { EXIT, UsageError } from "../terminal/failure.js";
import { errorLine, leaderLine } from "../terminal/lines.js";
import { output } from "../terminal/output.js";
import { redact } from "../terminal/secrets.js";
import { tableLines } from "../terminal/table.js";
import { controlsIn, reader } from "./controls.js";
import { knownElections } from "./known-elections.js";
import { stopOnSignals } from "./signals.js";
import { addStoreOptions, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";

interface StatusOptions extends StoreOptions {
  readonly json?: boolean;
}

/** One election, asked once. */
interface Answer {
  readonly name: string;
  readonly leader: Leader | null;
  /** Whether operators have paused it; `undefined`: the store keeps no records, or they cannot be read. */
  readonly paused?: boolean | undefined;
  /** It is paused, and somebody was elected since. */
  readonly pauseIgnored?: boolean | undefined;
  /** What its leaders have recorded; `undefined`: nothing, or it was not asked for. */
  readonly history?: TermHistory | undefined;
  /** Why it could not be asked. */
  readonly error?: unknown;
}

const IGNORED = "paused, but led: its candidates do not follow requests (controls: true)";
/** Elections asked at a time. */
const AT_ONCE = 16;

const HELP = `
Examples:
  $ conclave status
  $ conclave status nightly-bill mailer --json
  $ conclave status --lock-dir /var/lib/billing

Asks once and ends; "conclave observe --watch" goes on. "(paused)": nobody new is elected, see "conclave pause --help". An
election that is paused and was won since has a line of its own: its candidates do not follow requests.
Exit codes: 0 every election was asked; 2 bad usage; 3 the store, or an election in it, could not be asked; 4 any other fault.`;

const LIST_HELP = `
Examples:
  $ conclave list
  $ conclave list --json

As "conclave status", and what leaders have recorded: CHANGES is how often leadership went to another candidate (where
leaders keep a history, as those of this program do). Elections without a candidate are listed as long as the store has
anything of theirs; "conclave forget" removes that.
Exit codes: 0 every election was asked; 2 bad usage; 3 the store, or an election in it, could not be asked; 4 any other fault.`;

export function addList(program: Command, done: (code: number) => void): void {
  const command = program
    .command("list")
    .summary("all elections: who leads, since when, how many changes")
    .description(
      "Lists the elections of a store: who leads each, since when, and how often leadership changed.",
    )
    .argument("[NAME...]", "the elections; all that the store lists if none is named");
  addStoreOptions(command)
    .option(
      "--json",
      "one JSON object a line: event, at, election, candidate, token, value, since, paused, pauseIgnored, terms, changes",
    )
    .addHelpText("after", LIST_HELP)
    .action(async (names: readonly string[], options: StatusOptions) =>
      done(await status(names, options, true)),
    );
}

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

async function status(names: readonly string[], options: StatusOptions, histories = false): Promise<number> {
  if (new Set(names).size !== names.length) throw new UsageError("the same election is named twice");
  const store = await openStore(options);
  await using _backend = store.backend;
  using stop = stopOnSignals();
  const { signal } = stop;
  const chosen = names.length > 0 ? names : await knownElections(store, signal);
  const elections = chosen.map((name) => reader(store.backend, name));
  const answers = await asked(elections, histories, signal);
  const out = output();
  if (options.json === true) for (const answer of answers) out.line(JSON.stringify(lineOf(answer)));
  else if (answers.length === 0) out.line(`there is no election in ${store.where}`);
  else for (const line of table(answers, histories)) out.line(line);
  return answers.some(({ error }) => error !== undefined) ? EXIT.unreachable : EXIT.ok;
}

async function asked(
  elections: readonly Election[],
  histories: boolean,
  signal: AbortSignal,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let begin = 0; begin < elections.length; begin += AT_ONCE) {
    const some = elections.slice(begin, begin + AT_ONCE);
    answers.push(...(await Promise.all(some.map((election) => ask(election, histories, signal)))));
  }
  return answers;
}

async function ask(election: Election, histories: boolean, signal: AbortSignal): Promise<Answer> {
  const { name, backend } = election;
  await using _election = election;
  const { records } = backend;
  // What records say is an addition: without them the answer is who leads.
  const controls =
    records &&
    controlsIn(records, name)
      .read({ signal })
      .catch(() => undefined);
  const history = records && histories ? readHistory(backend, name, { signal }).catch(() => null) : undefined;
  try {
    const leader = await election.leader({ signal });
    const said = await controls;
    return {
      name,
      leader,
      paused: said && said.pause !== null,
      pauseIgnored: leader !== null && leader.token > (said?.pause?.found ?? leader.token),
      history: (await history) ?? undefined,
    };
  } catch (error) {
    if (signal.aborted) throw error;
    return { name, leader: null, error };
  }
}

function lineOf({ name, leader, paused, pauseIgnored, history, error }: Answer): object {
  if (error !== undefined) return errorLine(name, null, null, error);
  return {
    ...leaderLine(name, leader),
    since: leader?.since ?? null,
    ...(paused !== undefined && { paused }),
    ...(pauseIgnored === true && { pauseIgnored }),
    ...(history !== undefined && { terms: history.recorded, changes: history.changes }),
  };
}

function table(answers: readonly Answer[], histories: boolean): string[] {
  const rows = answers.map(({ name, leader, paused, pauseIgnored, history, error }) => ({
    election: name,
    leader: error === undefined ? (leader?.candidate ?? null) : undefined,
    paused: paused === true,
    token: leader?.token.toString() ?? null,
    since: leader?.since ?? null,
    ...(histories && { changes: history?.changes ?? null }),
    trouble: error === undefined ? (pauseIgnored === true ? IGNORED : null) : redact(describe(error)),
  }));
  return tableLines(rows, systemClock.wall(), {
    columns: process.stdout.isTTY ? process.stdout.columns || 80 : Infinity,
    rows: Infinity,
  });
}
