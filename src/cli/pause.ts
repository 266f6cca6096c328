/** While an election is paused nobody new is elected: for maintenance of what the leader works on. */
import type { Command } from "commander";
import type { Controls } from "../control/codec.js";
import type { ControlRecord } from "../control/record.js";
import type { Election } from "../election/election.js";
import { FRESH_MS } from "../election/operators.js";
import { systemClock } from "../kit/clock.js";
import { sleep } from "../kit/wait.js";
import type { Leader } from "../seam/backend.js";
import { EXIT } from "../terminal/failure.js";
import { output } from "../terminal/output.js";
import { askToResign, controlsIn, operator, reader, recordsIn } from "./controls.js";
import type { ResignResult } from "./controls.js";
import { durationOption } from "./options.js";
import { ASK_MS, told } from "./resign.js";
import { stopOnSignals } from "./signals.js";
import { addStoreOptions, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";

interface PauseOptions extends StoreOptions {
  readonly resign?: boolean;
  readonly timeout?: number;
  readonly json?: boolean;
}

/** A candidate that was granted leadership while the pause was written leads all the same: it is asked too. */
const MOST_LEADERS = 3;
const INSTEAD = "stop the candidates";
/** Nothing in the store tells them from those that obey, so it is said each time. */
const DEAF =
  "candidates of the library that were opened without controls: true do not obey, nor do those of other languages";

const PAUSE_HELP = `
Examples:
  $ conclave pause nightly-bill             nobody new is elected; the leader goes on
  $ conclave pause nightly-bill --resign    and the leader resigns
  $ conclave unpause nightly-bill

The pause is kept in the store until "conclave unpause". It is honoured by candidates that were started by this program,
or with the library's option "controls: true": they do not campaign, and give back what they win. Candidates of other
languages, and library users without that option, do not know of it and may still be elected; "conclave list" and "conclave
status" show it when that has happened.

Exit codes: 0 paused (with --resign: and nobody leads); 2 bad usage, or a store without records; 3 the store could not be
asked; 4 any other fault; 5 paused, but with --resign the leader did not resign in time, or another one leads.`;

const UNPAUSE_HELP = `
Exit codes: 0 no longer paused; 1 it was not paused; 2 bad usage, or a store without records; 3 the store could not be
asked; 4 any other fault.`;

export function addPause(program: Command, done: (code: number) => void): void {
  const pausing = program
    .command("pause")
    .summary("let nobody new be elected")
    .description("Pauses an election: nobody new is elected until it is unpaused.")
    .argument("<NAME>", "the election");
  addStoreOptions(pausing)
    .option("--resign", "ask the leader to resign, too")
    .addOption(durationOption("--timeout", "with --resign: wait at most this long for it (default 30s)"))
    .option("--json", "one JSON object: event, election, candidate, token, detail")
    .addHelpText("after", PAUSE_HELP)
    .action(async (name: string, options: PauseOptions) => done(await pause(name, options)));
  const unpausing = program
    .command("unpause")
    .summary("let candidates be elected again")
    .description("Ends the pause of an election: its candidates campaign again.")
    .argument("<NAME>", "the election");
  addStoreOptions(unpausing)
    .option("--json", "one JSON object: event, election")
    .addHelpText("after", UNPAUSE_HELP)
    .action(async (name: string, options: PauseOptions) => done(await unpause(name, options)));
}

async function pause(name: string, options: PauseOptions): Promise<number> {
  const store = await openStore(options, { visitor: true });
  await using backend = store.backend;
  const record = controlsIn(recordsIn(store, "way to pause", INSTEAD), name);
  await using election = reader(backend, name);
  using stop = stopOnSignals();
  const { signal } = stop;
  const by = operator();
  const paused = (now: Controls): Controls => ({
    ...now,
    pause: now.pause ?? { since: systemClock.wall(), by },
  });
  await record.change(paused, { signal });
  const { timeout: limitMs = ASK_MS } = options;
  // Who has looked just before the pause may still be elected, and obeys all the same.
  await sleep(systemClock, 2 * FRESH_MS, signal);
  const leader = await election.leader({ signal });
  await record.change((now) => withFound(now, leader), { signal });
  const rest =
    options.resign === true
      ? await emptied(record, election, leader, { signal, limitMs })
      : {
          leader,
          code: EXIT.ok,
          detail: leader === null ? "nobody leads" : `${leader.candidate} goes on leading`,
        };
  const line = {
    event: "paused",
    election: name,
    candidate: rest.leader?.candidate ?? null,
    token: rest.leader?.token.toString() ?? null,
    detail: rest.detail,
  };
  output().line(options.json === true ? JSON.stringify(line) : `"${name}" is paused; ${rest.detail}`);
  if (options.json !== true) output().line(DEAF);
  return rest.code;
}

/** Notes whom the pause has found: whoever leads later does not follow it. A pause that goes on keeps the first one. */
function withFound(now: Controls, leader: Leader | null): Controls | null {
  if (now.pause === null || now.pause.found !== undefined) return null;
  return { ...now, pause: { ...now.pause, found: leader?.token ?? 0n } };
}

interface Rest {
  /** Who leads on. */
  readonly leader: Leader | null;
  readonly code: number;
  readonly detail: string;
}

/** Asks the leader to resign, and who was elected in the same moment. */
async function emptied(
  record: ControlRecord,
  election: Election,
  first: Leader | null,
  options: { readonly signal: AbortSignal; readonly limitMs: number },
): Promise<Rest> {
  let leader = first;
  for (let asked = 0; leader !== null && asked < MOST_LEADERS; asked++) {
    const result: ResignResult = await askToResign(record, election, leader, { ...options, pause: true });
    const { sentence, code } = told(result, leader.candidate, options.limitMs);
    if (result.kind !== "resigned")
      return { leader, code: code === EXIT.no ? EXIT.late : code, detail: sentence };
    leader = result.next;
  }
  if (leader === null) return { leader, code: EXIT.ok, detail: "nobody leads" };
  return { leader, code: EXIT.late, detail: `${leader.candidate} leads: it does not honour pauses` };
}

async function unpause(name: string, options: PauseOptions): Promise<number> {
  const store = await openStore(options, { visitor: true });
  await using _backend = store.backend;
  const record = controlsIn(recordsIn(store, "way to pause", INSTEAD), name);
  using stop = stopOnSignals();
  let was = false;
  await record.change(
    (now) => {
      was = now.pause !== null;
      return was ? { ...now, pause: null } : null;
    },
    { signal: stop.signal },
  );
  const event = was ? "unpaused" : "not-paused";
  const sentence = was ? `"${name}" is no longer paused` : `"${name}" was not paused`;
  output().line(options.json === true ? JSON.stringify({ event, election: name }) : sentence);
  return was ? EXIT.ok : EXIT.no;
}
