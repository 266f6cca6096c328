/** `conclave lock NAME -- command args…`: one term of `conclave exec`, in the words and exit codes of a lock. */
import type { Command } from "commander";
import type { ErrorCode } from "../kit/errors.js";
import { addLastWillOption, candidateId, lastWillOf, openCandidate } from "./candidacy.js";
import type { LastWillOptions } from "./candidacy.js";
import { commandOf, findCommand } from "../exec/lookup.js";
import type { ContainChoice } from "../exec/containment-method.js";
import type { Notes } from "../exec/notes.js";
import { stopBudgetOf } from "../exec/stop-budget.js";
import { SignalForwarder } from "../exec/signal-forwarder.js";
import { WatchdogPool } from "../exec/watchdog-pool.js";
import { Wrapper } from "../exec/wrapper.js";
import { EXIT, UsageError } from "../terminal/failure.js";
import type { Line } from "../terminal/lines.js";
import { addRunnerOptions, durationOption } from "./options.js";
import { addMetricsOption, serveMetrics } from "./metrics.js";
import type { MetricsOption } from "./metrics.js";
import { output } from "../terminal/output.js";
import { addStoreOptions, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";

interface LockCommandOptions extends StoreOptions, LastWillOptions, MetricsOption {
  readonly timeout?: number;
  readonly try?: boolean;
  readonly quiet?: boolean;
  readonly ttl?: number;
  readonly id?: string;
  readonly passEnv?: readonly string[];
  readonly contain: ContainChoice;
}

const HELP = `
Examples:
  $ export CONCLAVE_BACKEND=etcd://etcd-1:2379,etcd-2:2379,etcd-3:2379   (a store that all machines reach)
  $ conclave lock deploy -- ./deploy.sh production
  $ conclave lock deploy --try -- ./deploy.sh || echo "someone else deploys"
  $ conclave lock report --timeout 30s -- sh -c 'echo "token $CONCLAVE_TOKEN"'

The command finds CONCLAVE_TOKEN, CONCLAVE_ELECTION and CONCLAVE_ID in its environment, but not what the store is opened
with. Signals to this program are passed on to it; the lock is given back when it and all it started have ended.
If the lock is lost, or this program is killed or stopped, they are ended before anyone else can hold the lock.
Exit codes: the command's own, 128+n if signal n ended it; 1 the lock was not free, or was lost; 2 bad usage;
3 not known whether the lock is free, or store unreachable; 4 any other fault; 126 not executable; 127 not found.`;

export function addLock(program: Command, done: (code: number) => void): void {
  const command = program
    .command("lock")
    .summary("run a command under a lock")
    .description("Waits for the lock, runs the command, and gives the lock back.")
    .usage("<NAME> [options] -- <command> [args...]")
    .argument("<NAME>", "the lock")
    .argument("[command...]", "after --: what to run")
    .option("--quiet", "do not say where the lock lives")
    .option("--try", "do not wait: exit 1 if the lock is not free")
    .addOption(durationOption("--timeout", "wait at most this long for the lock (default forever)"))
    .addOption(durationOption("--ttl", "how long the lock lasts without a sign of life (default 10s)"))
    .option("--id <id>", "readable part of this holder's id (default the host's name)");
  addMetricsOption(addRunnerOptions(addLastWillOption(addStoreOptions(command))))
    .addHelpText("after", HELP)
    .action(async (name: string, words: string[], options: LockCommandOptions) =>
      done(await lockCommand(name, words, options)),
    );
}

async function lockCommand(name: string, words: string[], options: LockCommandOptions): Promise<number> {
  // First of all: from here on no signal is lost.
  using forwarder = new SignalForwarder();
  if (options.try === true && options.timeout !== undefined)
    throw new UsageError("--try and --timeout exclude each other: give one");
  const command = commandOf(words, "lock NAME");
  const say = (text: string): void => output(process.stderr).line(`conclave: ${text}`);
  const found = findCommand(command[0]);
  if (found.status !== 0) {
    say(`${found.why}; the lock was not asked for`);
    return found.status;
  }
  await using watchdogs = new WatchdogPool(options.contain);
  const store = await openStore(
    options,
    { processes: () => watchdogs.pids, lastWill: lastWillOf(options) },
    "refuse",
  );
  if (options.quiet !== true) say(`lock "${name}" lives in ${store.where}`);
  const id = candidateId(options.id);
  // A lock is an election nobody watches.
  await using election = await openCandidate(name, id, { leaseDuration: options.ttl }, store.backend);
  await using _metrics = await serveMetrics(options, { election }, (line) =>
    options.quiet === true ? undefined : say(line),
  );
  // Without waiting there is one attempt: its failure is reported once, at the end.
  const notes = new LockNotes(options.try === true ? () => {} : say);
  const outcome = await new Wrapper({
    election,
    watchdogs,
    forwarder,
    notes,
    stopBudget: stopBudgetOf(election.timing, undefined),
    policy: { onExit: "stop", onLoss: "exit", try: options.try === true, timeoutMs: options.timeout },
    command,
    passEnv: new Set(options.passEnv),
  }).run();
  switch (outcome.kind) {
    case "done":
    case "stopped":
      return outcome.status;
    case "lost":
      say(`lock "${name}" was lost: ${outcome.why}; the command was ended`);
      return EXIT.no;
    case "late":
      if (notes.unknown !== undefined) {
        say(`timed out waiting for lock "${name}"; whether it is held is not known: ${notes.unknown}`);
        return EXIT.unreachable;
      }
      say(`lock "${name}" is held by someone else`);
      return EXIT.no;
    case "taken":
      say(`lock "${name}" is held by someone else`);
      return EXIT.no;
  }
}

/** Codes of errors that are worth another try. */
const PASSING: ReadonlySet<string> = new Set<ErrorCode>(["timeout", "unavailable"]);

/** Of the wrapper's lines, only what keeps us from knowing who holds the lock. */
class LockNotes implements Notes {
  readonly #say: (text: string) => void;
  #said: string | undefined;
  /** Why it is not known whether someone holds the lock. `undefined`: someone does, by the last answer of the store. */
  unknown: string | undefined = "the store has not answered yet";

  constructor(say: (text: string) => void) {
    this.#say = say;
  }

  line({ event, token, reason, code }: Line): void {
    if (event === "leader" || event === "elected") this.unknown = undefined;
    // While the command runs its lines come first, and ours could wait for its reader.
    if (event !== "error" || token !== null || reason === undefined) return;
    this.unknown = reason;
    // A permanent failure ends the wait and is reported at the end.
    if (code !== undefined && !PASSING.has(code)) return;
    if (this.#said !== reason) this.#say(`${reason}; trying again`);
    this.#said = reason;
  }

  status(): void {}

  note(): void {}

  async flush(): Promise<void> {}
}
