/** Runs a command once under a term: started by the watchdog, which hears of every renewal. */
import type { Election } from "../../core/election.js";
import type { Term } from "../../core/term.js";
import type { Guard, Running } from "./guard.js";
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
  /** See tree.ts. */
  readonly mark: string;
  /** Told when SIGTERM was sent for want of a renewal. */
  readonly warned: () => void;
}

export function perform(performance: Performance): Running {
  const { election, term, guard, patience, command, env, mark, warned } = performance;
  const { graceMs, reserveMs, silenceMs } = patience;
  const [file, ...args] = command;
  const { marginMs } = election.timing;
  const order = { command: file, args, env, mark, graceMs, marginMs };
  const running = guard.start(order, leaveOf(term, reserveMs), { warned, silenceMs });
  const off = election.on("renewal", (renewal) => {
    if (renewal.ok && renewal.term === term) running.extend(leaveOf(term, reserveMs));
  });
  void running.ended.then(off);
  return running;
}
