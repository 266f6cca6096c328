import type { Command } from "commander";
import { Lock } from "../core/lock.js";
import type { Term } from "../core/term.js";
import { isConclaveError } from "../core/errors.js";
import { onAbort } from "../core/waiting.js";
import { exitCodeOfChild, runChild, termEnvironment } from "./child.js";
import { EXIT, UsageError } from "./failure.js";
import { durationOption } from "./options.js";
import { output } from "./output.js";
import { candidateId } from "./candidacy.js";
import { stopOnSignals } from "./signals.js";
import { addStoreOptions, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";

interface LockCommandOptions extends StoreOptions {
  readonly timeout?: number;
  readonly try?: boolean;
  readonly ttl?: number;
  readonly id?: string;
}

const HELP = `
Examples:
  $ conclave lock deploy -- ./deploy.sh production
  $ conclave lock deploy --try -- ./deploy.sh || echo "someone else deploys"
  $ conclave lock report --timeout 30s -- sh -c 'echo "token $CONCLAVE_TOKEN"'

The command finds CONCLAVE_TOKEN, CONCLAVE_ELECTION and CONCLAVE_CANDIDATE in its environment.
If the lock is lost, the command and all it started are ended, before anyone else can hold the lock.
Exit codes: the command's own; 1 the lock was not free, or was lost; 2 bad usage; 3 store unreachable.`;

export function addLock(program: Command, done: (code: number) => void): void {
  const command = program
    .command("lock")
    .summary("run a command under a lock")
    .description("Waits for the lock, runs the command, and gives the lock back.")
    .argument("<NAME>", "the lock")
    .argument("<command...>", "after --: what to run")
    .option("--try", "do not wait: exit 1 if the lock is not free")
    .addOption(durationOption("--timeout", "wait at most this long for the lock (default for ever)"))
    .addOption(durationOption("--ttl", "how long the lock lasts without a sign of life (default 10s)"))
    .option("--id <id>", "readable part of this holder's id (default the host's name)");
  addStoreOptions(command)
    .addHelpText("after", HELP)
    .action(async (name: string, words: string[], options: LockCommandOptions) =>
      done(await lockCommand(name, words, options)),
    );
}

async function lockCommand(name: string, words: string[], options: LockCommandOptions): Promise<number> {
  if (options.try === true && options.timeout !== undefined)
    throw new UsageError("--try and --timeout exclude each other: give one");
  const store = await openStore(options);
  await using _backend = store.backend;
  await using lock = new Lock({
    name,
    backend: store.backend,
    id: candidateId(options.id),
    ttlMs: options.ttl,
  });
  const say = (text: string): void => output(process.stderr).line(`conclave: ${text}`);
  using stop = stopOnSignals();
  const term = await acquire(lock, options, stop.signal);
  if (term === null) {
    if (stop.signal.aborted) return EXIT.no;
    say(`lock "${name}" is held by someone else`);
    return EXIT.no;
  }
  const unlink = onAbort(stop.signal, () => void term.resign());
  const working = runChild({
    command: words,
    env: termEnvironment(term),
    signal: term.signal,
    graceMs: graceMs(lock),
  });
  term.serve(working.catch(() => {}));
  try {
    const end = await working;
    if (term.held) return exitCodeOfChild(end);
    say(`lock "${name}" was lost: ${term.end?.detail ?? "it ran out"}; the command was ended`);
    return EXIT.no;
  } finally {
    unlink();
    await term.resign();
    await term.ended;
  }
}

/** `null` = it is not free. */
async function acquire(lock: Lock, options: LockCommandOptions, signal: AbortSignal): Promise<Term | null> {
  try {
    if (options.try === true) return await lock.tryAcquire({ signal });
    return await lock.acquire({ signal, timeoutMs: options.timeout });
  } catch (error) {
    if (signal.aborted) return null;
    const waited = options.timeout !== undefined && isConclaveError(error) && error.code === "timeout";
    if (waited) return null;
    throw error;
  }
}

/** A holder stops a margin before its lease is over: the command must be gone within that. */
function graceMs(lock: Lock): number {
  return lock.timing.marginMs / 2;
}
