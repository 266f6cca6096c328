/** Runs a command once under a term: started by the watchdog, which hears of every renewal. */
import type { Election } from "../election/election.js";
import type { Term } from "../api/term.js";
import type { Guard, Notices, Running } from "./guard.js";
import { leaveOf } from "./leave.js";
import type { Command } from "./lookup.js";
import type { Patience } from "./patience.js";

export interface Performance {
  readonly election: Election;
  readonly term: Term;
  readonly guard: Guard;
  readonly patience: Patience;
  readonly command: Command;
  readonly env: Readonly<Record<string, string>>;
  /** Found in the environment of every process of the command, and of no other. */
  readonly mark: string;
  readonly notices: Notices;
}

export function perform(performance: Performance): Running {
  const { election, term, guard, patience, command, env, mark, notices } = performance;
  const { graceMs, reserveMs, slackMs, silenceMs } = patience;
  const [file, ...args] = command;
  const { marginMs } = election.timing;
  const order = { command: file, args, env, mark, graceMs, reserveMs, slackMs, marginMs };
  const running = guard.start(order, leaveOf(term, reserveMs), { notices, silenceMs });
  const off = election.on("renewal", (renewal) => {
    if (renewal.ok && renewal.term === term) running.extend(leaveOf(term, reserveMs));
  });
  void running.ended.then(off);
  return running;
}
