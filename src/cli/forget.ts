/** Removes what an abandoned election left in its store. */
import type { Command } from "commander";
import { EMPTY } from "../control/codec.js";
import { HISTORY } from "../control/history.js";
import { CONTROL } from "../control/record.js";
import { ROSTER } from "../control/roster.js";
import type { Election } from "../election/election.js";
import { systemClock } from "../kit/clock.js";
import { ConclaveError } from "../kit/errors.js";
import { recordKey } from "../kit/names.js";
import { bounded, onAbort } from "../kit/wait.js";
import type { Backend, Forgotten, Leader } from "../seam/backend.js";
import type { RecordStore } from "../seam/table.js";
import { EXIT } from "../terminal/failure.js";
import { output } from "../terminal/output.js";
import { ATTEMPT_MS, reader } from "./controls.js";
import { durationOption } from "./options.js";
import { stopOnSignals } from "./signals.js";
import { addStoreOptions, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";

interface ForgetOptions extends StoreOptions {
  readonly timeout?: number;
  readonly json?: boolean;
}

/** A leader that has crashed may have had a lease of this length. */
const SILENCE_MS = 20_000;
const MOST_RACES = 10;

const HELP = `
Examples:
  $ conclave forget old-job
  $ conclave forget old-job --json

Removes what an election left that nobody uses any more: its lease, its pause and its history. Refused while somebody
leads it or, where the store shows them (etcd, ZooKeeper), campaigns in it: stop the candidates first. On stores that show
only a record (files, Kubernetes) a leader that crashed is waited for until its lease has run out.
Tokens never go back: where a removed record could let them (files, Raft peers), a vacated one stays, which is said.
A schedule's runs and fences are records of their own, and stay. Kubernetes: needs the right to delete Leases.

Exit codes: 0 removed, or only a vacated record is kept; 1 it is in use: nothing, or not everything, was removed; 2 bad
usage; 3 the store could not be asked, or refused; 4 any other fault.`;

export function addForget(program: Command, done: (code: number) => void): void {
  const command = program
    .command("forget")
    .summary("remove what an abandoned election left")
    .description("Removes what an election that nobody uses any more left in its store.")
    .argument("<NAME>", "the election");
  addStoreOptions(command)
    .addOption(
      durationOption("--timeout", "wait at most this long for the lease of a dead leader (default 20s)"),
    )
    .option("--json", "one JSON object: event, election, kept")
    .addHelpText("after", HELP)
    .action(async (name: string, options: ForgetOptions) => done(await forget(name, options)));
}

async function forget(name: string, options: ForgetOptions): Promise<number> {
  const store = await openStore(options, { visitor: true });
  await using backend = store.backend;
  await using election = reader(backend, name);
  using stop = stopOnSignals();
  const { signal } = stop;
  const say = (event: Forgotten, sentence: string): number => {
    const line = { event, election: name, kept: event === "kept" };
    output().line(options.json === true ? JSON.stringify(line) : sentence);
    return event === "in-use" ? EXIT.no : EXIT.ok;
  };
  const leader = await lastLeader(election, options.timeout ?? SILENCE_MS, signal);
  if (leader !== null)
    return say(
      "in-use",
      `${leader.candidate} leads "${name}" with token ${leader.token}: nothing was removed`,
    );
  const lease = await forgotten(backend, name, signal);
  if (lease === "in-use")
    return say(
      "in-use",
      `"${name}" has candidates, or was just used: nothing was removed; stop its candidates first`,
    );
  const emptied = await forgetRecords(backend.records, name, signal);
  const kept = lease === "kept" || emptied;
  return say(
    kept ? "kept" : "removed",
    kept
      ? `"${name}" is forgotten; a vacated record is kept in ${store.where}, so that tokens go on rising`
      : `"${name}" is forgotten: nothing of it is left in ${store.where}`,
  );
}

/** Who leads after all. Where candidates time leases themselves, the first look cannot tell a dead leader from a living one. */
async function lastLeader(election: Election, limitMs: number, signal: AbortSignal): Promise<Leader | null> {
  const leader = await election.leader({ signal });
  if (leader === null || election.backend.guarantees.expiry !== "observer") return leader;
  const stop = new AbortController();
  const unlink = onAbort(signal, () => stop.abort());
  const timer = systemClock.after(limitMs, () => stop.abort());
  let last: Leader | null = leader;
  try {
    for await (const now of election.observe({ signal: stop.signal })) {
      last = now;
      // Another term: somebody uses it.
      if (now === null || now.token !== leader.token) break;
    }
    signal.throwIfAborted();
    return last;
  } finally {
    timer.cancel();
    unlink();
    stop.abort();
  }
}

async function forgotten(backend: Backend, name: string, signal: AbortSignal): Promise<Forgotten> {
  const { forget: remove } = backend;
  if (remove === undefined) return "removed"; // nothing is kept
  return bounded(systemClock, 2 * ATTEMPT_MS, signal, `forgetting "${name}"`, (limited) =>
    remove.call(backend, name, { signal: limited }),
  );
}

/** The election's records. `true`: the store cannot remove them, and they are emptied instead. */
async function forgetRecords(
  records: RecordStore | undefined,
  name: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (records === undefined) return false;
  const emptied = await Promise.all(
    [CONTROL, HISTORY, ROSTER].map((kind) => forgetRecord(records, recordKey(kind, name), signal)),
  );
  return emptied.includes(true);
}

async function forgetRecord(records: RecordStore, key: string, signal: AbortSignal): Promise<boolean> {
  for (let race = 0; race < MOST_RACES; race++) {
    const entry = await bounded(systemClock, ATTEMPT_MS, signal, `reading record "${key}"`, (s) =>
      records.read(key, { signal: s }),
    );
    if (entry === null || entry.record === EMPTY) return entry !== null;
    const { version } = entry;
    const gone = await bounded(systemClock, ATTEMPT_MS, signal, `removing record "${key}"`, async (s) => {
      if (records.remove !== undefined) return records.remove(key, version, { signal: s });
      return (await records.write(key, version, EMPTY, { signal: s })) !== null;
    });
    if (gone) return records.remove === undefined;
  }
  throw new ConclaveError(
    "unavailable",
    `record "${key}" is written all the time: stop the candidates first`,
  );
}
