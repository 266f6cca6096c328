/** The command of `conclave cron`: guarded as that of `conclave exec` is. */
import type { JobContext, Schedule } from "../cron/index.js";
import type { Term } from "../api/term.js";
import { onAbort } from "../kit/wait.js";
import { commandEnvironment, processMarkOf } from "../exec/environment.js";
import type { CommandEnd, WatchdogClient, Notices, Running } from "../exec/watchdog-client.js";
import type { Command } from "../exec/lookup.js";
import { stopBudgetOf } from "../exec/stop-budget.js";
import { runCommand } from "../exec/run-command.js";
import type { WatchdogPool } from "../exec/watchdog-pool.js";

/** Longest time a command has between SIGTERM and SIGKILL, even if the ttl would allow more. */
const LONGEST_GRACE_MS = 5_000;

const SILENT: Notices = { warned: () => {}, unknown: () => {} };

export interface CronJobOptions {
  readonly command: Command;
  readonly watchdogs: WatchdogPool;
  readonly passEnv: ReadonlySet<string>;
}

export class CronJob {
  readonly #options: CronJobOptions;
  /** The watchdog that our record in the store names. */
  #listed: WatchdogClient;
  #runs = 0;

  private constructor(options: CronJobOptions, listed: WatchdogClient) {
    this.#options = options;
    this.#listed = listed;
  }

  /** To be opened before campaigning: from the start of a term every process that may act is listed and guarded. */
  static async open(options: CronJobOptions): Promise<CronJob> {
    return new CronJob(options, await options.watchdogs.ready());
  }

  /** One run. Settles when nothing of it lives; rejects unless the command ended well, and by itself. */
  async run({ scheduledAt, attempt, term, signal }: JobContext, { election }: Schedule): Promise<void> {
    const { command, passEnv } = this.#options;
    const watchdog = await this.#watchdog(term);
    // With `--overlap parallel` runs of one term go on at once.
    const number = ++this.#runs;
    const stopBudget = stopBudgetOf(election.timing, undefined);
    const env = {
      ...commandEnvironment(process.env, passEnv, term, number),
      CONCLAVE_SCHEDULED_AT: scheduledAt.toISOString(),
      CONCLAVE_ATTEMPT: String(attempt),
    };
    const mark = processMarkOf(term, number);
    const running = runCommand({ election, term, watchdog, stopBudget, command, env, mark, notices: SILENT });
    const graceMs = Math.min(stopBudget.graceMs, LONGEST_GRACE_MS);
    checkEnd(await untilEnded(running, term, signal, graceMs), term, command[0]);
  }

  /** A watchdog that lives, and that whoever finds us dead will wait for. */
  async #watchdog(term: Term): Promise<WatchdogClient> {
    const watchdog = await this.#options.watchdogs.ready();
    // The one before died between two runs: the record has to name this one before it starts anything.
    if (watchdog !== this.#listed) await term.proclaim(term.value);
    this.#listed = watchdog;
    return watchdog;
  }
}

async function untilEnded(
  running: Running,
  term: Term,
  signal: AbortSignal,
  graceMs: number,
): Promise<CommandEnd> {
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

function checkEnd(ending: CommandEnd, term: Term, file: string): void {
  const name = JSON.stringify(file);
  if (ending.kind === "unguarded" || ending.stopped === "jeopardy") {
    // The run was cut short and counts as interrupted; the next leader may run it again.
    void term.resign();
    throw new Error(
      ending.kind === "unguarded" ? `the watchdog was lost: ${name} was killed` : `${name} was ended`,
    );
  }
  if (ending.failed !== null) throw new Error(`${name} could not be started: ${ending.failed}`);
  if (ending.signal !== null) throw new Error(`ended by ${ending.signal}`);
  if (ending.status !== 0) throw new Error(`exit code ${ending.status}`);
}
