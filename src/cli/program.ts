/** The command line: what there is to say, and what becomes of what was said. */
import { Command, CommanderError } from "commander";
import { addCron } from "./cron.js";
import { addDemo, addDemoNode } from "./demo.js";
import { addEvict } from "./evict.js";
import { addExec } from "./exec.js";
import { EXIT, exitCodeOf, failureLine } from "../terminal/failure.js";
import { addForget } from "./forget.js";
import { addHistory } from "./history.js";
import { addLastWill } from "./last-will.js";
import { addLeader } from "./leader.js";
import { addLock } from "./lock.js";
import { addObserve } from "./observe.js";
import { addPause } from "./pause.js";
import { printable } from "../kit/printable.js";
import { output } from "../terminal/output.js";
import { addResign } from "./resign.js";
import { addRun } from "./run.js";
import { redact } from "../terminal/secrets.js";
import { addServe } from "./serve.js";
import { addList, addStatus } from "./status.js";
import { addStoreCommands } from "./store-commands.js";
import { similarFlag } from "./suggest.js";
import { addTransfer } from "./transfer.js";
import { version } from "./version.js";

const HELP = `
Examples:
  $ conclave demo                          three candidates, in this terminal
  $ export CONCLAVE_BACKEND=etcd://etcd-1:2379   a store that all machines reach
  $ conclave cron '0 3 * * *' bill -- ./bill.sh    once a night, on all machines together
  $ conclave run mailer --ttl 10s          campaign, and say who leads
  $ conclave exec mailer -- ./mailer.sh    run a command while leading
  $ conclave leader mailer --json          who leads?
  $ conclave status                        all elections here, and who leads them
  $ conclave list                          the same, with the changes of leader that are known
  $ conclave observe --watch               the same, as a table that is drawn again
  $ conclave lock deploy -- ./deploy.sh    one at a time
  $ conclave history mailer                the last terms: who, how long, why they ended
  $ conclave resign mailer                 ask the leader to resign
  $ conclave pause mailer                  nobody new is elected, until: conclave unpause mailer
  $ conclave evict mailer                  end the term of a leader that hangs
  $ conclave forget old-job                remove what an abandoned election left
  $ conclave serve mailer --ui             the same over HTTP, and as a page

Without --backend elections live in files of this user on this machine, and machines do not compete with each other.
In a container cron, exec and lock then refuse; --backend file: says that one machine is meant.
A URL with a password is better given in CONCLAVE_BACKEND: arguments can be seen by others.`;

const UNKNOWN_FLAG = "error: unknown option '";
const UNKNOWN_COMMAND = "error: unknown command '";

/** Runs a command line, `argv` without the program's name. Returns the exit code. Never throws. */
export async function main(argv: readonly string[]): Promise<number> {
  let code: number = EXIT.ok;
  const program = build((result) => (code = result));
  try {
    await program.parseAsync([...argv], { from: "user" });
    return code;
  } catch (error) {
    // Commander has said what was wrong already; asking for help is no mistake.
    if (error instanceof CommanderError) {
      if (error.code === "commander.unknownOption") complainOfFlag(program, argv, error.message);
      return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    }
    output(process.stderr).line(`conclave: ${failureLine(error)}`);
    return exitCodeOf(error);
  }
}

function build(done: (code: number) => void): Command {
  const program = new Command("conclave")
    .description("Leader election: of many candidates, one leads.")
    .option("-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .helpCommand("help [command]", "show help for a command")
    // Flags belong to the command they follow: what comes after `exec … --` is not ours to read.
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      outputError: (text, write) => {
        // Said later, with a better suggestion: Commander knows only one of the two names a flag can have.
        if (text.startsWith(UNKNOWN_FLAG)) return;
        const lost = text.startsWith(UNKNOWN_COMMAND) && !text.includes("Did you mean");
        write(
          `conclave: ${printable(redact(oneLine(text)))}${lost ? " (`conclave --help` lists them)" : ""}\n`,
        );
      },
    })
    .addHelpText("after", HELP);
  program.on("option:version", () => {
    output().line(version());
    throw new CommanderError(0, "conclave.version", "");
  });
  addRun(program, done);
  addExec(program, done);
  addLeader(program, done);
  addStatus(program, done);
  addList(program, done);
  addObserve(program, done);
  addLock(program, done);
  addCron(program, done);
  addServe(program, done);
  addHistory(program, done);
  addResign(program, done);
  addTransfer(program, done);
  addPause(program, done);
  addEvict(program, done);
  addForget(program, done);
  addLastWill(program, done);
  addStoreCommands(program, done);
  addDemo(program, done);
  addDemoNode(program, done);
  return program;
}

function complainOfFlag(program: Command, argv: readonly string[], message: string): void {
  const written = message.slice(UNKNOWN_FLAG.length).replace(/[='].*$/s, "");
  const command = program.commands.find((known) => known.name() === argv[0]);
  const similar = similarFlag(command ?? program, written);
  const help = `conclave ${command === undefined ? "" : `${command.name()} `}--help`;
  const wraps = ["exec", "lock", "cron"].includes(command?.name() ?? "")
    ? "; flags of the command to run come after --"
    : "";
  const hint =
    similar === undefined ? `(\`${help}\` lists them${wraps})` : `(Did you mean ${similar}?${wraps})`;
  output(process.stderr).line(`conclave: unknown option '${written}' ${hint}`);
}

function oneLine(text: string): string {
  return text
    .replace(/^error: /, "")
    .replace(/\s*\n\s*/g, " ")
    .trim();
}
