import { Option } from "commander";
import type { Command } from "commander";
import type { Backend } from "../seam/backend.js";
import type { Election } from "../election/election.js";
import { dashboard } from "../dashboard/index.js";
import { createSidecar } from "../sidecar/index.js";
import type { SidecarOptions } from "../sidecar/index.js";
import {
  addIdOption,
  addLastWillOption,
  lastWillOf,
  addStandingOptions,
  addTimingOptions,
  addValueOption,
  candidateId,
  newCandidate,
} from "./candidacy.js";
import type { CandidacyOptions, LastWillOptions } from "./candidacy.js";
import { observeOnly } from "./serve-observer.js";
import { Candidate } from "../terminal/candidate.js";
import { formatDuration } from "../terminal/duration.js";
import { EXIT, UsageError } from "../terminal/failure.js";
import { listenOption, sidecarToken } from "../terminal/listen.js";
import type { Address } from "../terminal/listen.js";
import { storeLine } from "../terminal/lines.js";
import { openLog } from "../terminal/log.js";
import type { Log, LogFormat } from "../terminal/log.js";
import { durationOption } from "./options.js";
import { output } from "../terminal/output.js";
import { stoppingText, stopOnSignals } from "./signals.js";
import { addStoreOptions, openStore } from "./store.js";
import type { StoreOptions } from "./store.js";

export interface ServeOptions extends StoreOptions, CandidacyOptions, LastWillOptions {
  readonly listen: Address;
  readonly tokenFile?: string;
  readonly allowHost?: readonly string[];
  readonly ui?: boolean;
  readonly observeOnly?: boolean;
  readonly log: LogFormat;
}

const LISTEN: Address = { host: "127.0.0.1", port: 4040 };

const HELP = `
Examples:
  $ export CONCLAVE_BACKEND=etcd://etcd-1:2379,etcd-2:2379,etcd-3:2379   (a store that all machines reach)
  $ conclave serve nightly-bill
  $ curl -s http://127.0.0.1:4040/elections/nightly-bill
  $ curl -sf http://127.0.0.1:4040/elections/nightly-bill/leading && echo "we lead"
  $ conclave serve nightly-bill mailer --ui
  $ conclave serve --ui --observe-only                 a page of all elections of the store
  $ conclave serve nightly-bill --listen 0.0.0.0:4040 --token-file /run/secrets/conclave --allow-host sidecar

Campaigns in each election and reports on it over HTTP. Answers say how long they may be relied on; when the
store cannot be asked, the answer is 503, not what was true before. Beyond this machine a token is required.
Ctrl-C or SIGTERM resigns and exits 0; a second one exits at once.
Exit codes: 0 stopped on request; 2 bad usage, or the address is taken; 3 the store could not be opened; 4 any other
fault, or output was lost.`;

export function addServe(program: Command, done: (code: number) => void): void {
  const command = program
    .command("serve")
    .summary("elections over HTTP, for any language")
    .description("Campaigns, and tells other programs over HTTP who leads.")
    .argument(
      "[NAME...]",
      "the elections; with --observe-only, all of the store, as `conclave list` has them, if none is named",
    );
  addIdOption(command);
  addLastWillOption(addStoreOptions(command));
  addTimingOptions(command).addOption(
    durationOption("--max-term", "resign after this long, so that leadership rotates (default never)"),
  );
  addStandingOptions(addValueOption(command), true)
    .addOption(listenOption("where to listen").default(LISTEN, "127.0.0.1:4040"))
    .option(
      "--token-file <path>",
      "file with the token that resigning, and everything beyond this machine, asks for (env CONCLAVE_SIDECAR_TOKEN)",
    )
    .option(
      "--allow-host <name>",
      "a further name clients call it by; may be given several times",
      (name: string, names: readonly string[] = []) => [...names, name],
    )
    .option("--ui", "a live page of the elections at /ui")
    .option("--observe-only", "campaign in none of them: show who leads, and change nothing")
    .addOption(new Option("--log <format>", "how to report").choices(["text", "json"]).default("text"))
    .addHelpText("after", HELP)
    .action(async (names: readonly string[], options: ServeOptions) => done(await serve(names, options)));
}

async function serve(names: readonly string[], options: ServeOptions): Promise<number> {
  if (new Set(names).size !== names.length) throw new UsageError("the same election is named twice");
  if (options.observeOnly === true) return observeOnly(names, options);
  if (names.length === 0)
    throw new UsageError("missing required argument 'NAME' (only --observe-only can do without)");
  const token = sidecarToken(options.tokenFile);
  const id = candidateId(options.nodeId);
  const store = await openStore(options, { lastWill: lastWillOf(options) });
  await using backend = store.backend;
  const elections = open(names, id, options, backend);
  const out = output();
  const log = openLog(options.log, out, id);
  using stop = stopOnSignals(["SIGINT", "SIGTERM"], (signal) =>
    log.note(
      `${signal}: ${stoppingText(elections.some((one) => one.leading))} (send it again to exit at once)`,
    ),
  );
  const metrics = await metricsOf(elections, log);
  const { host, port } = options.listen;
  await using sidecar = await createSidecar({
    elections,
    host,
    port,
    token,
    allowedHosts: options.allowHost,
    metrics,
    assets: options.ui === true ? await dashboard() : undefined,
  });
  log.note(`elections live in ${store.where}; ttl ${formatDuration(elections[0]!.timing.ttlMs)}`);
  if (options.log === "json")
    for (const { name, candidate } of elections) log.line(storeLine(name, candidate, store.where));
  log.note(`listening on ${sidecar.url}`);
  if (options.ui === true) log.note(`page: ${sidecar.url}/ui`);
  if (token === undefined) log.note("no token is set: resigning over HTTP is off");
  await Promise.all(
    elections.map((election) => {
      const own = quiet(openLog(options.log, out, election.name, election.candidate));
      return new Candidate({ election, log: own, signal: stop.signal }).run();
    }),
  );
  return EXIT.ok;
}

function open(names: readonly string[], id: string, options: ServeOptions, backend: Backend): Election[] {
  return names.map((name) => newCandidate(name, id, options, backend));
}

/** A line each second is for one election in one terminal; here, the page and the routes tell. */
function quiet(log: Log): Log {
  return { ...log, status: () => {} };
}

/** prom-client is an optional peer: without it everything else still works. */
async function metricsOf(elections: readonly Election[], log: Log): Promise<SidecarOptions["metrics"]> {
  try {
    const { ElectionMetrics } = await import("../metrics/index.js");
    const metrics = new ElectionMetrics();
    for (const election of elections) metrics.watch(election);
    const { registry } = metrics;
    return async () => ({ type: registry.contentType, text: await registry.metrics() });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND")) throw error;
    log.note("metrics are off: prom-client is not installed (npm install prom-client)");
    return undefined;
  }
}
