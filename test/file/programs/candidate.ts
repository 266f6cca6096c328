/**
 * A candidate that looks every 2 ms whether it leads, and says so: one line with
 * the token and the instant. The lines are its writes to a resource, too.
 */
import { writeSync } from "node:fs";
import { fileBackend } from "../../../src/backends/file/index.js";
import { Election } from "../../../src/election/election.js";
import { onAbort } from "../../../src/kit/wait.js";

const [directory = "", ttlMs = "2000", rule = "on"] = process.argv.slice(2);
const election = new Election({
  name: "leadership",
  id: `p${process.pid}`,
  backend: fileBackend({ directory, deadProcessRule: rule === "on" }),
  ttlMs: Number(ttlMs),
});

setInterval(() => {
  const term = election.term;
  if (term === undefined) return;
  // The clock first: a term that is held after this instant was held at it, however long we were stopped in between.
  const at = process.hrtime.bigint();
  if (term.held) writeSync(1, `${term.token} ${at}\n`);
}, 2);

process.on("disconnect", () => process.exit());
await election.run((term) => new Promise((resolve) => onAbort(term.signal, () => resolve())));
