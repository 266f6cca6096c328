/** The command line as a process. */
import { EXIT, failureLine } from "../terminal/failure.js";
import { output } from "../terminal/output.js";
import { main } from "./program.js";
import { surviveLostOutput } from "../terminal/writing.js";

/** A client library that leaves something open must not keep the command from ending. */
const PATIENCE_MS = 2_000;

surviveLostOutput();
/** `exec` has codes of its own: a low one would be taken for the command's. */
const FAULT = process.argv[2] === "exec" ? 125 : EXIT.fault;

// Node would exit with 1, which means "nobody leads", and print whatever the error holds.
process.on("uncaughtException", (error) => {
  output(process.stderr).line(`conclave: unexpected fault: ${failureLine(error)}`);
  process.exit(FAULT);
});

process.exitCode = await main(process.argv.slice(2));
setTimeout(() => process.exit(), PATIENCE_MS).unref();
