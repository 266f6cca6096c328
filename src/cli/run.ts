import { Option } from "commander";
import type { Command } from "commander";
import {
  addIdOption,
  addLastWillOption,
  addStandingOptions,
  lastWillOf,
  addTimingOptions,
  addValueOption,
  candidateId,
  openCandidate,
} from "./candidacy.js";
import type { CandidacyOptions, LastWillOptions } from "./candidacy.js";
import { Candidate } from "../terminal/candidate.js";
import { formatDuration } from "../terminal/duration.js";
import { EXIT, UsageError } from "../terminal/failure.js";
import { storeLine } from "../terminal/lines.js";
import { openLog } from "../terminal/log.js";
import type { LogFormat } from "../terminal/log.js";
import { durationOption } from "./options.js";
import { output } from "../terminal/output.js";
import { addMetricsOption, serveMetrics } from "./metrics.js";
import type { MetricsOption } from "./metrics.js";
import { stoppingText, stopOnSignals } from "./signals.js";
import { addElectionFlags, addStoreOptions, electionFlags, electionsNamed, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";

const DEFAULT_NAME = "leader-election-demo";

interface RunOptions extends StoreOptions, CandidacyOptions, LastWillOptions, MetricsOption {
  readonly lockName?: string;
  readonly workEvery?: number;
  readonly try?: boolean;
  readonly log: LogFormat;
}

const HELP = `
Examples:
  $ conclave run mailer --backend etcd://etcd-1:2379,etcd-2:2379 --id web-1
  $ conclave run --backend file: --ttl 3s --work-every 1s --max-term 30s       (one machine is meant)
  $ conclave run mailer --lock-dir /var/lib/billing --log json                    (one machine is meant)
  $ conclave run mailer --backend etcd://etcd-1:2379 --try || echo "someone else leads"

Ctrl-C or SIGTERM stops the work, resigns and exits 0; a second one exits at once.
Exit codes: 0 stopped on request; 2 bad usage; 3 the store could not be opened; 4 any other fault, or output was lost.
With --try: 1 not elected, or leadership lost; 3 store unreachable.`;

export function addRun(program: Command, done: (code: number) => void): void {
  const command = program
    .command("run")
    .summary("campaign and lead, with a status line each second")
    .description("Campaigns, works while it leads, then campaigns again, until it is stopped.")
    .argument("[NAME]", `the election (default "${DEFAULT_NAME}")`);
  addIdOption(command).option("--lock-name <name>", "the election; the same as NAME");
  addLastWillOption(addStoreOptions(command));
  addElectionFlags(command);
  addTimingOptions(command)
    .addOption(durationOption("--work-every", "do a piece of work this often while leading (default never)"))
    .addOption(
      durationOption("--max-term", "resign after this long, so that leadership rotates (default never)"),
    );
  addStandingOptions(addMetricsOption(addValueOption(command)), true)
    .option("--try", "one attempt: lead for one term, or exit 1 if someone else leads")
    .addOption(new Option("--log <format>", "how to report").choices(["text", "json"]).default("text"))
    .addHelpText("after", HELP)
    .action(async (name: string | undefined, options: RunOptions) => done(await run(name, options)));
}

async function run(name: string | undefined, options: RunOptions): Promise<number> {
  if (options.try === true && options.ineligible === true)
    throw new UsageError(
      "--try and --ineligible exclude each other: an ineligible candidate is never elected",
    );
  const election = electionName(name, options);
  const id = candidateId(options.nodeId);
  let note = (_line: string): void => {};
  const store = await openStore(options, { lastWill: lastWillOf(options), log: (line) => note(line) });
  const standing = await openCandidate(election, id, options, store.backend);
  const log = openLog(options.log, output(), id, standing.candidate);
  note = (line) => log.note(line);
  using stop = stopOnSignals(["SIGINT", "SIGTERM"], (signal) =>
    log.note(`${signal}: ${stoppingText(standing.leading)} (send it again to exit at once)`),
  );
  log.note(
    `candidate ${standing.candidate} in election "${election}", ttl ${formatDuration(standing.timing.ttlMs)}`,
  );
  log.line(storeLine(election, standing.candidate, store.where));
  const metrics = serveMetrics(options, { election: standing }, (line) => log.note(line));
  metrics.catch(() => standing.close());
  await using _metrics = await metrics;
  const candidate = new Candidate({
    election: standing,
    log,
    signal: stop.signal,
    workEveryMs: options.workEvery,
  });
  if (options.try !== true) {
    await candidate.run();
    return EXIT.ok;
  }
  try {
    return (await candidate.once()) === "done" ? EXIT.ok : EXIT.no;
  } catch (error) {
    if (stop.signal.aborted) return EXIT.ok;
    throw error;
  }
}

function electionName(name: string | undefined, options: RunOptions): string {
  const given = new Set([name, options.lockName, ...electionsNamed(options)]);
  given.delete(undefined);
  if (given.size > 1) {
    const flags = ["--lock-name", ...electionFlags().map((flag) => `--${flag.name}`)].join(" and ");
    throw new UsageError(`NAME, ${flags} are the same thing and differ: give one`);
  }
  return [...given][0] ?? DEFAULT_NAME;
}
