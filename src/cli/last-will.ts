/** Executes the wills of processes of this user that are dead: for service managers that end a helper with its process. */
import type { Command } from "commander";
import { executeWill } from "../executor/execute.js";
import { describe } from "../kit/errors.js";
import { EXIT } from "../terminal/failure.js";
import { output } from "../terminal/output.js";
import { redact } from "../terminal/secrets.js";
import { listWills, willDirectory } from "../will/file.js";

const HELP = `
Examples:
  $ conclave last-will
  ExecStopPost=/usr/bin/conclave last-will        in a unit of systemd

A process that is started with --last-will writes down what it leads, and a helper gives that back when it dies. Where
helper and process are ended together (a service manager that ends a whole cgroup), run this afterwards, as the same user
and with the same environment. It gives back what processes held that are certainly dead, and touches nothing else.
It is safe to run at any time, several times, and on any number of machines.

Exit codes: 0 all wills of dead processes were executed, or there are none; 3 a store could not be asked; 4 any other fault.`;

export function addLastWill(program: Command, done: (code: number) => void): void {
  program
    .command("last-will")
    .summary("give back what dead processes of this user led")
    .description("Gives back what processes of this user led that have died with their helpers.")
    .addHelpText("after", HELP)
    .action(async () => done(await lastWill()));
}

async function lastWill(): Promise<number> {
  const out = output();
  const wills = await listWills();
  if (wills.length === 0) out.line(`there is no will in ${willDirectory()}`);
  let code: number = EXIT.ok;
  for (const path of wills) {
    try {
      const { released, notHeld, failures } = await executeWill(path, false);
      out.line(`${path}: ${released} given back, ${notHeld} over already, ${failures.length} not known`);
      for (const failure of failures) output(process.stderr).line(`conclave: ${redact(failure)}`);
      if (failures.length > 0) code = EXIT.unreachable;
    } catch (error) {
      // Of a process that lives, as most are; or nothing is certain. Its leases are its own affair.
      out.line(`${path}: ${redact(describe(error))}`);
    }
  }
  return code;
}
