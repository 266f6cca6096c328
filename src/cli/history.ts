/** The last terms of an election, as its leaders wrote them down. */
import type { Command } from "commander";
import { readHistory } from "../control/history.js";
import type { PastTerm } from "../control/history.js";
import { printable } from "../kit/printable.js";
import type { Leader } from "../seam/backend.js";
import { EXIT } from "../terminal/failure.js";
import { output } from "../terminal/output.js";
import { redact } from "../terminal/secrets.js";
import { elapsed } from "../terminal/table.js";
import { reader, recordsIn } from "./controls.js";
import { stopOnSignals } from "./signals.js";
import { addStoreOptions, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";

interface HistoryOptions extends StoreOptions {
  readonly json?: boolean;
}

const HELP = `
Examples:
  $ conclave history nightly-bill
  $ conclave history nightly-bill --json

The last 50 terms, oldest first: when each began (by its leader's clock), how long it lasted, its token, its leader and
how it ended. They are kept in the store by leaders that were started by this program, or with the library's option
"history: true"; terms of others are missing. "not recorded": its leader crashed, or could not write down the end.

Exit codes: 0 there is a history; 1 no leader has kept one; 2 bad usage, or a store without records; 3 the store could not
be asked; 4 any other fault.`;

export function addHistory(program: Command, done: (code: number) => void): void {
  const command = program
    .command("history")
    .summary("the last terms of an election")
    .description("Shows the last terms of an election: who led, how long, and why it ended.")
    .argument("<NAME>", "the election");
  addStoreOptions(command)
    .option("--json", "one JSON object a term: election, candidate, token, since, lastedMs, reason, detail")
    .addHelpText("after", HELP)
    .action(async (name: string, options: HistoryOptions) => done(await history(name, options)));
}

async function history(name: string, options: HistoryOptions): Promise<number> {
  const store = await openStore(options, { visitor: true });
  await using backend = store.backend;
  recordsIn(store, "history", "look at the logs of the candidates");
  await using election = reader(backend, name);
  using stop = stopOnSignals();
  const { signal } = stop;
  const [found, leader] = await Promise.all([
    readHistory(backend, name, { signal }),
    election.leader({ signal }),
  ]);
  const out = output();
  if (found === null) {
    if (options.json !== true) out.line(`no leader has kept a history of "${name}" in ${store.where}`);
    return EXIT.no;
  }
  const terms = found.terms.map((term) => ({ ...term, reason: stateOf(term, leader) }));
  if (options.json === true) {
    for (const term of terms) out.line(JSON.stringify({ election: name, ...term, token: `${term.token}` }));
    return EXIT.ok;
  }
  for (const line of columns(terms.map(row))) out.line(line);
  if (leader !== null && terms.at(-1)?.token !== leader.token)
    out.line(printable(`${leader.candidate} leads now, with token ${leader.token}, and keeps no history`));
  out.line(`${found.recorded} terms recorded, ${found.changes} changes of leader`);
  return EXIT.ok;
}

type State = Exclude<PastTerm["reason"], null> | "leads";

function stateOf({ reason, token }: PastTerm, leader: Leader | null): State {
  return reason ?? (leader?.token === token ? "leads" : "not-recorded");
}

function row({
  since,
  lastedMs,
  token,
  candidate,
  reason,
  detail,
}: Omit<PastTerm, "reason"> & { reason: State }) {
  const began = Math.abs(since) <= 8.64e15 ? new Date(since).toISOString() : "?";
  const lasted = lastedMs === null ? "" : lastedMs < 1_000 ? `${lastedMs}ms` : elapsed(lastedMs);
  const end = reason === "not-recorded" ? "not recorded" : reason;
  return [began, lasted, `${token}`, candidate, end, redact(detail)].map(printable);
}

function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((cells) => cells[column]!.length))) ?? [];
  return rows.map((cells) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join("  ")
      .trimEnd(),
  );
}
