import { Option } from "commander";
import type { Command } from "commander";
import { MOST_NODES } from "../demo/commands.js";
import { Dialer } from "../demo/dialer/dialer.js";
import { Director } from "../demo/director.js";
import { demoNode } from "../demo/node.js";
import { openDemoPage } from "../demo/page.js";
import type { DemoPage, DemoPageOptions } from "../demo/page.js";
import { ALGORITHMS } from "../demo/peers/model.js";
import type { Algorithm } from "../demo/peers/model.js";
import { Peers } from "../demo/peers/peers.js";
import { Printer } from "../demo/print.js";
import { Stage } from "../demo/stage.js";
import { formatDuration } from "../terminal/duration.js";
import { EXIT, failureLine } from "../terminal/failure.js";
import { listenOption } from "../terminal/listen.js";
import type { Address } from "../terminal/listen.js";
import { countOption, durationOption } from "./options.js";
import { output } from "../terminal/output.js";
import type { Out } from "../terminal/output.js";
import { demoPeers } from "./demo-peers.js";
import { stopOnSignals } from "./signals.js";

interface DemoOptions {
  readonly nodes: number;
  readonly leaseDuration: number;
  readonly once?: boolean;
  readonly peers?: Algorithm;
  /** `undefined`: if it can be had. */
  readonly ui?: boolean;
  readonly listen: Address;
}

interface DemoNodeOptions {
  readonly id: string;
  readonly lockDir: string;
  readonly ttl: number;
  readonly retry: number;
  readonly workEvery: number;
}

const LISTEN: Address = { host: "127.0.0.1", port: 0 };
const TTL_MS = 3_000;
const WORK_EVERY_MS = 1_000;

const HELP = `
Examples:
  $ conclave demo
  $ conclave demo --nodes 5 --once
  $ conclave demo --nodes 20 --listen 4041
  $ conclave demo --peers raft --once
  $ conclave demo --peers bully --nodes 5
  $ NO_COLOR=1 conclave demo --no-ui --once | tee demo.txt

Starts real processes on files in a temporary directory. The leader is stopped, then killed, then frozen;
each time another one takes over, and how long that took is printed. The address that is printed first opens a
page that shows the same, with buttons to resign, kill, freeze and cut off nodes: the first click and you direct.
The page also has the double dialer (five instances, one list of calls at 9:00, with Conclave and without) and
elections with no server: peers that elect by Raft, beside peers that elect by Bully. --peers shows one of the two in
the terminal as well: the leader is killed, the network falls into two parts, a disk is lost.
Ctrl-C ends it; nothing is left behind.
Exit codes: 0 it went as it should, or was stopped; 2 bad usage; 4 it did not go as it should.`;

export function addDemo(program: Command, done: (code: number) => void): void {
  program
    .command("demo")
    .summary("watch an election, live")
    .description("Shows candidates as real processes: graceful handover, crash, frozen leader.")
    .addOption(countOption("--nodes", "how many candidates", 1, MOST_NODES).default(3))
    .addOption(
      durationOption("--ttl, --lease-duration", "how long leadership lasts without a renewal").default(
        TTL_MS,
        "3s",
      ),
    )
    .option("--ui", "serve the page, and end if that cannot be done (default: serve it if it can be done)")
    .option("--no-ui", "this terminal only, no page")
    .addOption(listenOption("where the page is served").default(LISTEN, "127.0.0.1, any free port"))
    .addOption(new Option("--peers <algorithm>", "peers that elect with no server").choices([...ALGORITHMS]))
    .option("--once", "end after the last scene instead of going on until Ctrl-C")
    .addHelpText("after", HELP)
    .action(async (options: DemoOptions) => done(await demo(options)));
}

/** What the demo starts. Not for people, so not in the help. */
export function addDemoNode(program: Command, done: (code: number) => void): void {
  program
    .command("demo-node", { hidden: true })
    .argument("<NAME>")
    .requiredOption("--id <id>")
    .requiredOption("--lock-dir <dir>")
    .addOption(durationOption("--ttl", "").makeOptionMandatory())
    .addOption(durationOption("--retry", "").makeOptionMandatory())
    .addOption(durationOption("--work-every", "").makeOptionMandatory())
    .action(async (name: string, { id, lockDir, ttl, retry, workEvery }: DemoNodeOptions) => {
      done(await demoNode({ name, id, lockDir, ttlMs: ttl, retryMs: retry, workEveryMs: workEvery }));
    });
}

/** A machine where no page can be served still gets the demo in the terminal. */
async function openPage(
  { listen, ui, leaseDuration }: DemoOptions,
  shown: Omit<DemoPageOptions, "ttlMs" | "address">,
  out: Out,
): Promise<DemoPage | undefined> {
  if (ui === false) return undefined;
  try {
    const page = await openDemoPage({ ...shown, ttlMs: leaseDuration, address: listen });
    out.line(`page: ${page.url}`);
    return page;
  } catch (error) {
    if (ui === true) throw error;
    out.line(`no page: ${failureLine(error)}`);
    return undefined;
  }
}

async function demo(options: DemoOptions): Promise<number> {
  const out = output();
  if (options.peers !== undefined)
    return demoPeers({
      algorithm: options.peers,
      count: options.nodes,
      ttlMs: options.leaseDuration,
      once: options.once === true,
      out,
      openPage: (peers, intervened) =>
        openPage(options, { stage: undefined, dialer: undefined, peers, intervened }, out),
    });
  const names = Array.from({ length: options.nodes }, (_, index) => `node${index + 1}`);
  const { leaseDuration: ttlMs } = options;
  using stop = stopOnSignals(["SIGINT", "SIGTERM", "SIGHUP"], () => {
    out.line("");
    out.line("stopping…");
  });
  const printer = new Printer(out);
  const stage = await Stage.open({
    names,
    ttlMs,
    retryMs: Math.round(ttlMs / 5),
    workEveryMs: WORK_EVERY_MS,
  });
  const off = stage.on((event, state) => printer.show(event, state));
  const director = new Director({ stage, names, ttlMs, signal: stop.signal });
  const dialer = new Dialer();
  const peers = new Peers({ ttlMs, algorithms: ALGORITHMS });
  const shown = { stage, dialer, peers, intervened: () => director.yield() };
  let page: DemoPage | undefined;
  try {
    out.line(`elections live in ${stage.directory} while the demo runs; ttl ${formatDuration(ttlMs)}`);
    page = await openPage(options, shown, out);
    await director.play();
    printer.summary(stage.state);
    if (options.once !== true || director.yielded) await director.goOn();
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    off();
    await page?.close();
    await peers[Symbol.asyncDispose]();
    await dialer[Symbol.asyncDispose]();
    await stage[Symbol.asyncDispose]();
  }
  out.line("all processes have ended, the directory is removed");
  return EXIT.ok;
}
