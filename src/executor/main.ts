/**
 * The executor's process: `node main.js will-file`. Its input ends when the
 * process whose will it is has died, or had ended before this one was started
 * (then a shell waited). The word "bye" says that there is nothing to do.
 */
import { describe } from "../kit/errors.js";
import { executeWill } from "./execute.js";

for (const signal of ["SIGHUP", "SIGINT", "SIGTERM", "SIGQUIT"] as const) process.on(signal, () => {});

let said = "";
process.stdin.setEncoding("latin1");
for await (const part of process.stdin) said = (said + String(part)).slice(-16);
const path = process.argv[2];
if (!said.includes("bye") && path !== undefined) {
  try {
    const { failures } = await executeWill(path, true);
    for (const failure of failures) process.stderr.write(`conclave: ${failure}\n`);
  } catch (error) {
    process.stderr.write(`conclave: ${describe(error)}\n`);
  }
}
// oxlint-disable-next-line unicorn/no-process-exit -- this is a program: a client that hangs must not keep it
process.exit();
