/** An operator asks a leader to resign: it stops its work in good order, and the next one leads. */
import type { Command } from "commander";
import { isHeir } from "../kit/heir.js";
import { formatDuration } from "../terminal/duration.js";
import { EXIT } from "../terminal/failure.js";
import { output } from "../terminal/output.js";
import { redact } from "../terminal/secrets.js";
import { askToResign, controlsIn, reader, recordsIn } from "./controls.js";
import type { ResignResult } from "./controls.js";
import { durationOption } from "./options.js";
import { stopOnSignals } from "./signals.js";
import { addStoreOptions, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";

interface ResignCommandOptions extends StoreOptions {
  readonly candidate?: string;
  readonly timeout?: number;
  readonly json?: boolean;
}

export const ASK_MS = 30_000;
const EVICT = "end its process, or use `conclave evict`";

const HELP = `
Examples:
  $ conclave resign nightly-bill                                    whoever leads now
  $ conclave resign nightly-bill --candidate web-1                  only if this one leads

The request is kept in the store; leaders that were started by this program, or with the library's option
"controls: true", follow it. The leader stops its work and gives leadership up; another candidate leads, or, if there is
none, the same one again. A request is for one term: it never reaches a later one.
Leaders of other languages, and library users without that option, do not listen: use "conclave evict", or end the process.

Exit codes: 0 it has resigned; 1 nobody leads, another candidate leads, or the leader refused; 2 bad usage, or a store
without records; 3 the store could not be asked; 4 any other fault; 5 the term was not over in time: see the message.`;

export function addResign(program: Command, done: (code: number) => void): void {
  const command = program
    .command("resign")
    .summary("ask the leader to resign")
    .description("Asks the leader to stop its work and to give leadership up, and says what became of it.")
    .argument("<NAME>", "the election");
  addStoreOptions(command)
    .option(
      "--candidate <id>",
      "only if this candidate leads: its id, or the readable part of it (`conclave leader NAME` prints it)",
    )
    .addOption(durationOption("--timeout", "wait at most this long for the end of its term (default 30s)"))
    .option("--json", "one JSON object: event, election, candidate, token, next, detail")
    .addHelpText("after", HELP)
    .action(async (name: string, options: ResignCommandOptions) => done(await resign(name, options)));
}

async function resign(name: string, options: ResignCommandOptions): Promise<number> {
  const store = await openStore(options, { visitor: true });
  await using backend = store.backend;
  const record = controlsIn(recordsIn(store, "way to ask its leaders", EVICT), name);
  await using election = reader(backend, name);
  using stop = stopOnSignals();
  const { signal } = stop;
  const { timeout: limitMs = ASK_MS, candidate } = options;
  const leader = await election.leader({ signal });
  const say = (event: string, sentence: string, more: object = {}): void => {
    const about = {
      election: name,
      candidate: leader?.candidate ?? null,
      token: leader?.token.toString() ?? null,
    };
    output().line(options.json === true ? JSON.stringify({ event, ...about, ...more }) : sentence);
  };
  if (leader === null) {
    say("nobody", `nobody leads "${name}" in ${store.where}`);
    return EXIT.no;
  }
  if (candidate !== undefined && !isHeir(leader.candidate, candidate)) {
    say("other", `${leader.candidate} leads "${name}", not ${candidate}: nothing was asked`);
    return EXIT.no;
  }
  const result = await askToResign(record, election, leader, { signal, limitMs, pause: false });
  const { event, sentence, code, more } = told(result, `${leader.candidate}, leader of "${name}"`, limitMs);
  say(event, sentence, more);
  return code;
}

interface Told {
  readonly event: string;
  readonly sentence: string;
  readonly code: number;
  readonly more: object;
}

/** What to say about it, and the exit code. */
export function told(result: ResignResult, leader: string, limitMs: number): Told {
  const time = formatDuration(limitMs);
  switch (result.kind) {
    case "resigned": {
      const { next } = result;
      const after =
        next === null ? "nobody leads now" : `${next.candidate} leads now, with token ${next.token}`;
      const more = { next: next?.candidate ?? null, nextToken: next?.token.toString() ?? null };
      return { event: "resigned", sentence: `${leader}, has resigned; ${after}`, code: EXIT.ok, more };
    }
    case "refused": {
      const detail = redact(result.why);
      return { event: "refused", sentence: `${leader}, refused: ${detail}`, code: EXIT.no, more: { detail } };
    }
    case "slow": {
      const detail = `it is stopping its work, which was not done within ${time}`;
      return {
        event: "slow",
        sentence: `${leader}, was asked: ${detail}`,
        code: EXIT.late,
        more: { detail },
      };
    }
    case "unheard": {
      const detail = `no answer within ${time}: it does not follow requests (another language, or a library user without controls: true), or it hangs; ${EVICT}`;
      return {
        event: "unheard",
        sentence: `${leader}, was asked: ${detail}`,
        code: EXIT.late,
        more: { detail },
      };
    }
  }
}
