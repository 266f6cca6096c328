import { Option } from "commander";
import type { Command } from "commander";
import { ALGORITHMS, MOST_NODES } from "../demo/choices.js";
import type { Algorithm } from "../demo/choices.js";
import { listenOption } from "../terminal/listen.js";
import type { Address } from "../terminal/listen.js";
import { countOption, durationOption } from "./options.js";

export interface DemoOptions {
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
    .action(async (options: DemoOptions) => {
      // Nobody else loads the demo.
      const { demo } = await import("./demo-run.js");
      done(await demo(options));
    });
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
      const { demoNode } = await import("../demo/node.js");
      done(await demoNode({ name, id, lockDir, ttlMs: ttl, retryMs: retry, workEveryMs: workEvery }));
    });
}
