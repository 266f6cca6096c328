/** The command of `conclave cron`: guarded as that of `conclave exec` is. */
import type { JobContext, Schedule } from "../cron/index.js";
import type { Term } from "../api/term.js";
import { onAbort } from "../kit/wait.js";
import { commandEnvironment, markOf } from "../exec/environment.js";
import type { Ending, Guard, Notices, Running } from "../exec/guard.js";
import type { Command } from "../exec/lookup.js";
import { patienceOf } from "../exec/patience.js";
import { perform } from "../exec/perform.js";
import type { GuardRoom } from "../exec/room.js";

/** Told to end, a command has at most this long, also where the ttl would allow for more. */
const LONGEST_GRACE_MS = 5_000;

const SILENT: Notices = { warned: () => {}, unknown: () => {} };

export interface CronJobOptions {
  readonly command: Command;
  readonly guards: GuardRoom;
  readonly passEnv: ReadonlySet<string>;
}

export class CronJob {
  readonly #options: CronJobOptions;
  /** The watchdog that our record in the store names. */
  #listed: Guard;
  #runs = 0;

  private constructor(options: CronJobOptions, listed: Guard) {
    this.#options = options;
    this.#listed = listed;
  }

  /** To be opened before anyone stands: from the first instant of a term everything that may act is listed and guarded. */
  static async open(options: CronJobOptions): Promise<CronJob> {
    return new CronJob(options, await options.guards.ready());
  }

  /** One run. Settles when nothing of it lives; rejects unless the command ended well, and by itself. */
  async run({ scheduledAt, attempt, term, signal }: JobContext, { election }: Schedule): Promise<void> {
    const { command, passEnv } = this.#options;
    const guard = await this.#guard(term);
    // With `--overlap parallel` runs of one term go on at once.
    const number = ++this.#runs;
    const patience = patienceOf(election.timing, undefined);
    const env = {
      ...commandEnvironment(process.env, passEnv, term, number),
      CONCLAVE_SCHEDULED_AT: scheduledAt.toISOString(),
      CONCLAVE_ATTEMPT: String(attempt),
    };
    const mark = markOf(term, number);
    const running = perform({ election, term, guard, patience, command, env, mark, notices: SILENT });
    const graceMs = Math.min(patience.graceMs, LONGEST_GRACE_MS);
    judge(await untilEnded(running, term, signal, graceMs), term, command[0]);
  }

  /** A watchdog that lives, and that whoever finds us dead will wait for. */
  async #guard(term: Term): Promise<Guard> {
    const guard = await this.#options.guards.ready();
    // The one before died between two runs: the record has to name this one before it starts anything.
    if (guard !== this.#listed) await term.proclaim(term.value);
    this.#listed = guard;
    return guard;
  }
}

async function untilEnded(
  running: Running,
  term: Term,
  signal: AbortSignal,
  graceMs: number,
): Promise<Ending> {
  let killing: NodeJS.Timeout | undefined;
  const unlink = onAbort(signal, () => {
    // Lost: a successor may lead already.
    if (!term.held) return running.kill();
    running.signal("SIGTERM");
    // One that is stopped would hear it too late.
    running.signal("SIGCONT");
    killing = setTimeout(() => running.kill(), graceMs);
  });
  // Also if that happens while it is given its grace.
  void term.ended.then(() => running.kill());
  const ending = await running.ended;
  clearTimeout(killing);
  unlink();
  return ending;
}

function judge(ending: Ending, term: Term, file: string): void {
  const name = JSON.stringify(file);
  if (ending.kind === "unguarded" || ending.stopped === "jeopardy") {
    // The run was cut short, so it counts as interrupted, and the office passes on: it may be another's to run it again.
    void term.resign();
    throw new Error(
      ending.kind === "unguarded" ? `the watchdog was lost: ${name} was killed` : `${name} was ended`,
    );
  }
  if (ending.failed !== null) throw new Error(`${name} could not be started: ${ending.failed}`);
  if (ending.signal !== null) throw new Error(`ended by ${ending.signal}`);
  if (ending.status !== 0) throw new Error(`exit code ${ending.status}`);
}
