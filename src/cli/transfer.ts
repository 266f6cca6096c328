/** An operator asks a leader to hand over to a candidate: it stops its work in good order, and that one leads. */
import type { Command } from "commander";
import { pausedText } from "../control/codec.js";
import { isHeir } from "../kit/heir.js";
import { checkCandidate } from "../kit/names.js";
import { EXIT, UsageError } from "../terminal/failure.js";
import { output } from "../terminal/output.js";
import { askToResign, controlsIn, reader, recordsIn, standees } from "./controls.js";
import { durationOption } from "./options.js";
import { ASK_MS, told } from "./resign.js";
import { stopOnSignals } from "./signals.js";
import { addStoreOptions, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";

interface TransferCommandOptions extends StoreOptions {
  readonly to: string;
  readonly timeout?: number;
  readonly json?: boolean;
}

/** Longer than others leave the vacancy to the one that was named. */
const SUCCESSOR_MS = 10_000;

const HELP = `
Examples:
  $ conclave transfer nightly-bill --to web-2                        by the readable part of its id
  $ conclave transfer nightly-bill --to web-2-5f0c7a1b29d4e8         by its full id

The request is kept in the store; leaders that were started by this program, or with the library's option
"controls: true", follow it. The leader stops its work and names the candidate as it gives leadership up; others leave
the vacancy to it for a few seconds, then anybody may lead. What is printed is what was seen in the store.
While the election is paused nothing is asked: nobody could take over. Nor is it if the leader is on a roster of candidates
(--priority, --roster) and the one that is named is not.

Exit codes: 0 the candidate leads; 1 another one leads, nobody does, the election is paused, or the leader refused; 2 bad
usage, nobody of that name on the roster, or a store without records; 3 the store could not be asked; 4 any other fault; 5 the term was not over in time: see
the message.`;

export function addTransfer(program: Command, done: (code: number) => void): void {
  const command = program
    .command("transfer")
    .summary("ask the leader to hand over to a candidate")
    .description("Asks the leader to give its leadership to a named candidate, and says who leads then.")
    .argument("<NAME>", "the election")
    .requiredOption("--to <id>", "who shall lead next: a candidate's id, or its readable part");
  addStoreOptions(command)
    .addOption(durationOption("--timeout", "wait at most this long for the end of its term (default 30s)"))
    .option("--json", "one JSON object: event, election, candidate, token, to, next, detail")
    .addHelpText("after", HELP)
    .action(async (name: string, options: TransferCommandOptions) => done(await transfer(name, options)));
}

async function transfer(name: string, options: TransferCommandOptions): Promise<number> {
  const to = checkCandidate(options.to);
  const store = await openStore(options, { visitor: true });
  await using backend = store.backend;
  const instead = "call term.transfer() in its program";
  const record = controlsIn(recordsIn(store, "way to ask its leaders", instead), name);
  await using election = reader(backend, name);
  using stop = stopOnSignals();
  const { signal } = stop;
  const leader = await election.leader({ signal });
  const say = (event: string, sentence: string, more: object = {}): void => {
    const { candidate = null, token = null } = leader ?? {};
    const line = { event, election: name, candidate, token: token?.toString() ?? null, to, ...more };
    output().line(options.json === true ? JSON.stringify(line) : sentence);
  };
  if (leader === null) {
    say("nobody", `nobody leads "${name}" in ${store.where}`);
    return EXIT.no;
  }
  if (isHeir(leader.candidate, to)) {
    say("taken", `${leader.candidate} leads "${name}" already`, { next: leader.candidate });
    return EXIT.ok;
  }
  if ((await record.read({ signal })).pause !== null) {
    const detail = pausedText(name);
    say("refused", detail, { detail });
    return EXIT.no;
  }
  checkStands(name, to, await standees(election, leader, signal));
  const limitMs = options.timeout ?? ASK_MS;
  const ask = { kind: "transfer", to } as const;
  const asked = { signal, limitMs, pause: false, ask, successorMs: SUCCESSOR_MS };
  const result = await askToResign(record, election, leader, asked);
  if (result.kind !== "resigned") {
    const { event, sentence, code, more } = told(result, `${leader.candidate}, leader of "${name}"`, limitMs);
    say(event, sentence, more);
    return code;
  }
  const next = result.next?.candidate ?? null;
  const taken = next !== null && isHeir(next, to);
  const event = taken ? "taken" : next === null ? "timeout" : "taken-by-other";
  const leads = next === null ? "nobody leads now" : `${next} leads now`;
  const now = taken ? leads : `${to} did not take it: ${leads}`;
  say(event, `${leader.candidate}, leader of "${name}", has given leadership up; ${now}`, { next });
  return taken ? EXIT.ok : EXIT.no;
}

/** A term is not given up for nobody: whoever is not on a roster that its leader is on does not stand, or not visibly. */
function checkStands(name: string, to: string, names: readonly string[]): void {
  if (names.length === 0 || names.some((id) => isHeir(id, to))) return;
  throw new UsageError(
    `no candidate "${to}" stands in election "${name}": nothing was asked. On its roster: ${names.join(", ")} ` +
      "(where one has a priority, the others need --roster to be on it)",
  );
}
