import { Option } from "commander";
import type { Command } from "commander";
import { cronTimetable, schedule } from "../cron/index.js";
import type { Misfire, Mode, Overlap, Run, Schedule, ScheduleOptions } from "../cron/index.js";
import { onAbort } from "../kit/wait.js";
import { CronJob } from "./cron-job.js";
import { runFields, runText } from "./cron-lines.js";
import { addCronStatus } from "./cron-status.js";
import { commandOf, findCommand } from "../exec/lookup.js";
import { describeContainment } from "../exec/containment-method.js";
import type { ContainChoice, ContainmentMethod } from "../exec/containment-method.js";
import { WatchdogPool } from "../exec/watchdog-pool.js";
import { EXIT, UsageError } from "../terminal/failure.js";
import { errorFields } from "../terminal/lines.js";
import type { LogFormat } from "../terminal/log.js";
import { addRunnerOptions, countOption, durationOption } from "./options.js";
import { addMetricsOption, serveMetrics } from "./metrics.js";
import type { MetricsOption } from "./metrics.js";
import { clockTime, output } from "../terminal/output.js";
import { addLastWillOption, candidateId, lastWillOf, operated } from "./candidacy.js";
import type { LastWillOptions } from "./candidacy.js";
import { stopOnSignals } from "./signals.js";
import { addStoreOptions, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";

interface CronOptions extends StoreOptions, LastWillOptions, MetricsOption {
  readonly timeZone?: string;
  readonly mode: Mode;
  readonly misfire: Misfire;
  readonly overlap: Overlap;
  readonly timeout?: number;
  readonly grace?: number;
  readonly catchUp?: number;
  readonly ttl?: number;
  readonly id?: string;
  readonly passEnv?: readonly string[];
  readonly contain: ContainChoice;
  readonly log: LogFormat;
}

const HELP = `
Examples:
  $ export CONCLAVE_BACKEND=etcd://etcd-1:2379,etcd-2:2379,etcd-3:2379   (a store that all machines reach)
  $ conclave cron '0 9 * * *' call-list --time-zone Europe/Berlin -- ./call.sh
  $ conclave cron '*/5 * * * *' sync --mode at-least-once --timeout 4m -- ./sync.sh
  $ conclave cron status call-list
  $ conclave cron '0 3 * * *' backup --backend file: -- ./backup.sh   (one machine is meant)

Start it on every machine, with the same store: one of them runs the command, once for each scheduled time. Machines
whose stores differ run it once each. Without a store, files of this machine are used; in a container that is refused.
The command finds CONCLAVE_SCHEDULED_AT, CONCLAVE_ATTEMPT, CONCLAVE_TOKEN, CONCLAVE_ELECTION and CONCLAVE_ID in its
environment, but not what the store is opened with. If leadership is lost, or this program is killed or stopped, the command
and all it started are ended before another can lead. When stopped, this program sends SIGTERM and soon SIGKILL.
at-most-once: if the leader dies on a scheduled time, it is missed and reported.
at-least-once: the next leader runs it again, with CONCLAVE_ATTEMPT 2.
Exit codes: 0 stopped on request; 2 bad usage; 3 the store could not be opened; 4 any other fault; 126 not executable;
127 not found.`;

export function addCron(program: Command, done: (code: number) => void): void {
  const command = program
    .command("cron")
    .summary("run a command on a schedule, once across all machines")
    .description("Runs a command on a schedule: once per scheduled time, however many machines wait for it.")
    .usage("<PATTERN> <NAME> [options] -- <command> [args...]")
    .argument("<PATTERN>", "five fields, or six with seconds in front; quote it")
    .argument("<NAME>", "the schedule, and its election")
    .argument("[command...]", "after --: what to run")
    .option("--time-zone <zone>", "whose clock the pattern means (default UTC)")
    .addOption(choice("--mode <mode>", "what a leader's death means", ["at-most-once", "at-least-once"]))
    .addOption(
      choice("--misfire <policy>", "scheduled times nobody could run in time", ["once", "skip", "all"]),
    )
    .addOption(
      choice("--overlap <policy>", "a scheduled time while the last run goes on", [
        "skip",
        "wait",
        "parallel",
      ]),
    )
    .addOption(durationOption("--timeout", "end a run after this long (default never)"))
    .addOption(durationOption("--grace", "with --misfire skip: how late is still in time (default 60s)"))
    .addOption(countOption("--catch-up", "with --misfire all: how many at most (default 100)", 1, 10_000))
    .addOption(durationOption("--ttl", "how long leadership lasts without a renewal (default 10s)"))
    .option("--id <id>", "readable part of this candidate's id (default the host's name)")
    .addOption(
      new Option("--log <format>", "how to report, on stderr").choices(["text", "json"]).default("text"),
    );
  addMetricsOption(addRunnerOptions(addLastWillOption(addStoreOptions(command))))
    .addHelpText("after", HELP)
    .action(async (pattern: string, name: string, words: string[], options: CronOptions) =>
      done(await cron(pattern, name, words, options)),
    );
  addCronStatus(command, done);
}

function choice(flags: string, description: string, choices: readonly string[]): Option {
  return new Option(flags, description).choices(choices).default(choices[0]);
}

async function cron(pattern: string, name: string, words: string[], options: CronOptions): Promise<number> {
  const command = commandOf(words, "cron PATTERN NAME");
  // What cannot be read is refused before anything is started.
  if (!/\s/.test(pattern.trim()) && !pattern.startsWith("@"))
    throw new UsageError(
      `"${pattern}" is no pattern: quote it, as in conclave cron '0 9 * * *' NAME -- command`,
    );
  const timetable = await cronTimetable(pattern, options.timeZone ?? "UTC");
  // Don't claim a run that this host cannot execute.
  const found = findCommand(command[0]);
  if (found.status !== 0) {
    output(process.stderr).line(`conclave: ${found.why}; not campaigning`);
    return found.status;
  }
  await using watchdogs = new WatchdogPool(options.contain, (method) =>
    sayContained(method, name, options.log),
  );
  const store = await openStore(
    options,
    { processes: () => watchdogs.pids, lastWill: lastWillOf(options) },
    "refuse",
  );
  await using _backend = store.backend;
  using stop = stopOnSignals();
  const job = await CronJob.open({ command, watchdogs, passEnv: new Set(options.passEnv) });
  await using replica = await schedule({
    ...settings(options),
    ...operated(store.backend),
    name,
    cron: timetable,
    backend: store.backend,
    job: (context) => job.run(context, replica),
  });
  const measured = { election: replica.election, schedule: replica };
  const note = (line: string): void =>
    output(process.stderr).line(`${clockTime(Date.now())} ${name}: ${line}`);
  await using _metrics = await serveMetrics(options, measured, options.log === "json" ? () => {} : note);
  report(replica, options.log, store.where);
  await new Promise<void>((resolve) => onAbort(stop.signal, resolve));
  return EXIT.ok;
}

type Settings = Omit<ScheduleOptions, "name" | "cron" | "backend" | "job">;

function settings(options: CronOptions): Settings {
  return {
    id: candidateId(options.id),
    mode: options.mode,
    misfire: options.misfire,
    overlap: options.overlap,
    timeoutMs: options.timeout,
    graceMs: options.grace,
    maxCatchUp: options.catchUp,
    ttlMs: options.ttl,
  };
}

function sayContained(method: ContainmentMethod, schedule: string, format: LogFormat): void {
  const at = Date.now();
  const detail = describeContainment(method);
  const json = JSON.stringify({ event: "contained", at, schedule, reason: method.kind, detail });
  const text = format === "json" ? json : `${clockTime(at)} ${schedule}: ${detail}`;
  output(process.stderr).line(text);
}

function report(replica: Schedule, format: LogFormat, where: string): void {
  const out = output(process.stderr);
  const line = (event: string, fields: Record<string, unknown>, text: string): void => {
    const at = Date.now();
    const json = JSON.stringify({ event, at, schedule: replica.name, ...fields });
    out.line(format === "json" ? json : `${clockTime(at)} ${replica.name}: ${text}`);
  };
  const about = (event: string, verb: string) => (told: { run: Run }) =>
    line(event, runFields(told.run), runText(told.run, verb));
  replica.on("started", about("started", "started"));
  replica.on("finished", (told) => about("finished", told.run.state)(told));
  replica.on("missed", about("missed", "MISSED"));
  replica.on("skipped", about("skipped", "skipped"));
  replica.on("error", ({ error }) =>
    line("error", errorFields(error), `error: ${errorFields(error).reason}`),
  );
  replica.election.on("elected", ({ term }) =>
    line("elected", { token: `${term.token}` }, `leads with token ${term.token}`),
  );
  replica.election.on("ended", ({ term, end }) =>
    line(
      "ended",
      { token: `${term.token}`, reason: end.reason },
      `term ${term.token} ${end.reason}: ${end.detail}`,
    ),
  );
  const next = replica.next();
  const soon = next === null ? "never" : new Date(next).toISOString();
  line(
    "scheduled",
    { next: soon, candidate: replica.election.candidate, store: where },
    `waiting; next run at ${soon}; kept in ${where}`,
  );
}
