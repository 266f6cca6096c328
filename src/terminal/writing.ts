/**
 * Output that cannot be written. EPIPE says that the reader has gone (`| head
 * -1`), which is how it asks a program to end. Anything else, such as a full
 * disk, may pass: the command goes on, says so once, and does not end with 0.
 */
import { EXIT } from "./failure.js";

export function nobodyReads(error: NodeJS.ErrnoException): boolean {
  return error.code === "EPIPE";
}

/** For the whole process: without it an error of an output stream would end the program with a stack trace. */
export function surviveLostOutput(): void {
  let lost = false;
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (lost || nobodyReads(error)) return;
    lost = true;
    process.stderr.write(`conclave: cannot write to stdout (${error.code}): lines are lost\n`);
  });
  // There is nobody left to tell.
  process.stderr.on("error", () => {});
  process.once("exit", (code) => {
    if (lost && code === EXIT.ok) process.exitCode = EXIT.fault;
  });
}
