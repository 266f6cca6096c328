/**
 * One replica of a schedule that ticks every second. Arguments: URL of the
 * store, name, mode, file that every run is written to. Says what happens, line
 * by line; told "cut" or "mend", it loses or regains its store; told "die", it
 * dies in the middle of its next run (unless told "live" before).
 */
import { appendFileSync } from "node:fs";
import { schedule } from "../../../src/cron/index.js";
import type { Mode, Run } from "../../../src/cron/index.js";
import { openBackend } from "../../../src/index.js";
import { Cuttable } from "../../support/cuttable.js";
import { say } from "../../support/say.js";

const [url, name, mode, log] = process.argv.slice(2);
const store = new Cuttable(await openBackend(url));
let doomed = false;
process.on("message", (message) => {
  if (message === "cut" || message === "mend") store.cut = message === "cut";
  if (message === "die" || message === "live") doomed = message === "die";
});

/** In one write each, so that no kill leaves half a line. */
const note = (line: Record<string, unknown>): void => appendFileSync(log!, `${JSON.stringify(line)}\n`);

const replica = await schedule({
  name: name!,
  cron: "* * * * * *",
  backend: store.backend,
  mode: mode as Mode,
  misfire: "all",
  overlap: "parallel",
  ttlMs: 2000,
  keep: 200,
  job: async ({ scheduledAt, attempt, term }) => {
    const run = { at: scheduledAt.getTime(), attempt, pid: process.pid, token: `${term.token}` };
    note({ event: "begin", ...run });
    if (doomed) process.kill(process.pid, "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, 20));
    note({ event: "done", ...run });
  },
});

const tell = (event: string) => (told: { run: Run }) => {
  const { at, until, note: why } = told.run;
  note({ event, at, until: until ?? at, why });
};
replica.on("missed", tell("missed"));
replica.on("skipped", tell("skipped"));
replica.on("error", ({ error }) => say({ event: "error", error: String(error) }));
replica.election.on("elected", ({ term }) => say({ event: "elected", token: term.token }));
replica.election.on("ended", ({ end }) => say({ event: "ended", ...end }));
say({ event: "ready", wall: Date.now() });
process.once("disconnect", () => process.exit(0));
