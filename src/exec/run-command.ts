/** Runs a command once under a term: started by the watchdog, which hears of every renewal. */
import type { Election } from "../election/election.js";
import type { Term } from "../api/term.js";
import type { WatchdogClient, Notices, Running } from "./watchdog-client.js";
import { killDeadlineOf } from "./kill-deadline.js";
import type { Command } from "./lookup.js";
import type { StopBudget } from "./stop-budget.js";

export interface CommandRun {
  readonly election: Election;
  readonly term: Term;
  readonly watchdog: Pick<WatchdogClient, "start">;
  readonly stopBudget: StopBudget;
  readonly command: Command;
  readonly env: Readonly<Record<string, string>>;
  /** Found in the environment of every process of the command, and of no other. */
  readonly mark: string;
  readonly notices: Notices;
}

export function runCommand(run: CommandRun): Running {
  const { election, term, watchdog, stopBudget, command, env, mark, notices } = run;
  const { graceMs, reserveMs, slackMs, silenceMs } = stopBudget;
  const [file, ...args] = command;
  const { marginMs } = election.timing;
  const order = { command: file, args, env, mark, graceMs, reserveMs, slackMs, marginMs };
  const running = watchdog.start(order, killDeadlineOf(term, reserveMs), { notices, silenceMs });
  const off = election.on("renewal", (renewal) => {
    if (renewal.ok && renewal.term === term) running.extend(killDeadlineOf(term, reserveMs));
  });
  void running.ended.then(off);
  return running;
}
