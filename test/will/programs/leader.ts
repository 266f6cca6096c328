/** Leads with a last will, and has a process that works for it and holds the pipe. */
import { spawn } from "node:child_process";
import { lastWill, openElection } from "../../../src/index.js";

const election = await openElection({
  name: "jobs",
  id: "leader",
  backend: process.env["STORE"] ?? "",
  ttlMs: 60_000,
  lastWill: true,
});
await election.campaign();
const worker = spawn("sleep", ["600"], {
  stdio: ["ignore", "ignore", "ignore", lastWill.stdio],
  detached: true,
});
process.stdout.write(`${JSON.stringify({ worker: worker.pid })}\n`);
