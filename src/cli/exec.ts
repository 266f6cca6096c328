/** `conclave exec NAME -- command args…`: the flags, and what they must not say together. */
import { Option } from "commander";
import type { Command } from "commander";
import type { Election } from "../election/election.js";
import {
  addIdOption,
  addLastWillOption,
  lastWillOf,
  addStandingOptions,
  addTimingOptions,
  addValueOption,
  candidateId,
  openCandidate,
} from "./candidacy.js";
import type { CandidacyOptions, LastWillOptions } from "./candidacy.js";
import { EXIT, exitCodeOf, failureLine, UsageError } from "../terminal/failure.js";
import { preciseNow, storeLine } from "../terminal/lines.js";
import type { Line } from "../terminal/lines.js";
import { addRunnerOptions, durationOption } from "./options.js";
import { addMetricsOption, serveMetrics } from "./metrics.js";
import type { MetricsOption } from "./metrics.js";
import { output } from "../terminal/output.js";
import { addStoreOptions, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";
import { commandOf, findCommand } from "../exec/lookup.js";
import { describeContainment } from "../exec/containment-method.js";
import type { ContainChoice, ContainmentMethod } from "../exec/containment-method.js";
import { openNotes } from "../exec/notes.js";
import type { NoteFormat } from "../exec/notes.js";
import { stopBudgetOf } from "../exec/stop-budget.js";
import { SignalForwarder } from "../exec/signal-forwarder.js";
import { WatchdogPool } from "../exec/watchdog-pool.js";
import { Wrapper } from "../exec/wrapper.js";
import type { WrapperResult, WrapperPolicy } from "../exec/wrapper.js";

/** Exit codes of our own. Below 120 they would be mistaken for the command's. */
const OWN_EXIT = { lost: 120, notElected: 121, timeout: 124, failed: 125 } as const;

interface ExecOptions extends StoreOptions, CandidacyOptions, LastWillOptions, MetricsOption {
  readonly grace?: number;
  readonly onExit?: WrapperPolicy["onExit"];
  readonly onLoss?: WrapperPolicy["onLoss"];
  readonly once?: boolean;
  readonly try?: boolean;
  readonly timeout?: number;
  readonly passEnv?: readonly string[];
  readonly contain: ContainChoice;
  readonly log: NoteFormat;
}

const HELP = `
Examples:
  $ export CONCLAVE_BACKEND=etcd://etcd-1:2379,etcd-2:2379,etcd-3:2379   (a store that all machines reach)
  $ conclave exec mailer --on-exit restart -- ./send-mails.sh --all
  $ conclave exec ticker -- sh -c 'while sleep 1; do echo "$CONCLAVE_TOKEN"; done'
  $ conclave exec worker --on-exit restart --ttl 5s --grace 1s -- node worker.js
  $ conclave exec backup --try --backend file: -- pg_dump shop > shop.sql   (one machine is meant)

The command is given CONCLAVE_TOKEN, CONCLAVE_ELECTION and CONCLAVE_ID. It runs in a session of its own; signals to
this program are passed on to its process group. If leadership cannot be renewed the group is sent SIGTERM, and SIGKILL
before another candidate can lead. If this program is killed or stopped, a watchdog process does the same.
Exit codes: that of the command, 128+n if signal n ended it. Our own: 2 bad usage; 120 leadership lost; 121 someone else
leads (--try); 124 not elected in time (--timeout); 125 the store refused us, or could not be asked (--try);
126 not executable; 127 not found.`;

const NOTE_FORMATS: readonly NoteFormat[] = ["text", "json", "none"];
const FLUSH_MS = 1_000;

export function addExec(program: Command, done: (code: number) => void): void {
  const command = program
    .command("exec")
    .summary("run a command while leading")
    .description("Campaigns, and runs a command only while it leads.")
    .usage("<NAME> [options] -- <command> [args...]")
    .argument("<NAME>", "the election")
    .argument("[command...]", "what to run, with its arguments; after --");
  addIdOption(command);
  addLastWillOption(addStoreOptions(command));
  addTimingOptions(command).addOption(
    durationOption(
      "--grace",
      "time between SIGTERM and SIGKILL when leadership is lost (default about ttl/8)",
    ),
  );
  addStandingOptions(addMetricsOption(addRunnerOptions(addValueOption(command))), false)
    .addOption(
      new Option("--on-exit <what>", "when the command has ended (default stop)").choices([
        "stop",
        "resign",
        "restart",
      ]),
    )
    .addOption(
      new Option("--on-loss <what>", "when leadership was lost (default wait)").choices(["wait", "exit"]),
    )
    .option("--once", "one term: the same as --on-exit stop --on-loss exit")
    .option("--try", "one attempt: exit 121 if someone else leads; one term")
    .addOption(durationOption("--timeout", "exit 124 if not elected within this time (default wait forever)"))
    .addOption(new Option("--log <format>", "our own lines, on stderr").choices(NOTE_FORMATS).default("text"))
    .addHelpText("after", HELP)
    .action(async (name: string, words: string[], options: ExecOptions) => {
      done(await exec(name, words, options));
    });
}

async function exec(name: string, words: readonly string[], options: ExecOptions): Promise<number> {
  // First of all: from here on no signal is lost.
  using forwarder = new SignalForwarder();
  try {
    return await runExec(name, words, options, forwarder);
  } catch (error) {
    const code = exitCodeOf(error);
    if (code === EXIT.usage) throw error;
    output(process.stderr).line(`conclave: ${failureLine(error)}`);
    return OWN_EXIT.failed;
  }
}

async function runExec(
  name: string,
  words: readonly string[],
  options: ExecOptions,
  forwarder: SignalForwarder,
): Promise<number> {
  const policy = policyOf(options);
  const command = commandOf(words, "exec NAME");
  const found = findCommand(command[0]);
  if (found.status !== 0) {
    output(process.stderr).line(`conclave: ${found.why}; not campaigning`);
    return found.status;
  }
  const id = candidateId(options.nodeId);
  const watchdogs = new WatchdogPool(options.contain, (method) =>
    notes.line(containedLine(election, method)),
  );
  const store = await openStore(
    options,
    { processes: () => watchdogs.pids, lastWill: lastWillOf(options) },
    "refuse",
  );
  await using election = await openCandidate(name, id, options, store.backend);
  const stopBudget = stopBudgetOf(election.timing, options.grace);
  const notes = openNotes(options.log, id, election.candidate);
  notes.note(`candidate ${election.candidate} in election "${name}"; elections live in ${store.where}`);
  if (options.log === "json") notes.line(storeLine(name, election.candidate, store.where));
  await using _metrics = await serveMetrics(options, { election }, (line) => notes.note(line));
  const passEnv = new Set(options.passEnv);
  const wrapper = new Wrapper({
    election,
    watchdogs,
    forwarder,
    notes,
    stopBudget,
    policy,
    command,
    passEnv,
  });
  try {
    return codeOf(await wrapper.run());
  } finally {
    await watchdogs.close();
    await notes.flush(FLUSH_MS);
  }
}

function containedLine({ name, candidate }: Election, method: ContainmentMethod): Line {
  const detail = describeContainment(method);
  return {
    event: "contained",
    at: preciseNow(),
    election: name,
    candidate,
    token: null,
    reason: method.kind,
    detail,
  };
}

function policyOf(options: ExecOptions): WrapperPolicy {
  const { onExit, onLoss, timeout } = options;
  const single = options.once === true || options.try === true;
  const flag = options.try === true ? "--try" : "--once";
  if (single && (onExit ?? "stop") !== "stop")
    throw new UsageError(`${flag} is one term: leave out --on-exit ${onExit}`);
  if (single && (onLoss ?? "exit") !== "exit")
    throw new UsageError(`${flag} is one term: leave out --on-loss ${onLoss}`);
  if (options.try === true && timeout !== undefined)
    throw new UsageError("--try does not wait: leave out --timeout");
  return {
    onExit: onExit ?? "stop",
    onLoss: onLoss ?? (single ? "exit" : "wait"),
    try: options.try === true,
    timeoutMs: timeout,
  };
}

function codeOf(outcome: WrapperResult): number {
  switch (outcome.kind) {
    case "done":
    case "stopped":
      return outcome.status;
    case "lost":
      return OWN_EXIT.lost;
    case "taken":
      return OWN_EXIT.notElected;
    case "late":
      return OWN_EXIT.timeout;
  }
}
