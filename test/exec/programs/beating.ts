/**
 * A command for tests: it and its descendants append heart beats to a file,
 * stamped with the clock that all processes of a machine share, and are deaf to
 * SIGTERM. Arguments: file, host, how many generations.
 */
import { spawn } from "node:child_process";
import { openSync, writeSync } from "node:fs";
import { fileURLToPath } from "node:url";

const EVERY_MS = 4;
const [file, host, generations] = process.argv.slice(2);
const left = Number(generations);
const token = process.env["CONCLAVE_TOKEN"]!;

process.on("SIGTERM", () => {});
const log = openSync(file!, "a");
const beat = (): void => void writeSync(log, `${host} ${token} ${left} ${process.hrtime.bigint()}\n`);
beat();
setInterval(beat, EVERY_MS);
if (left > 1) {
  const args = [fileURLToPath(import.meta.url), file!, host!, String(left - 1)];
  // The youngest leaves the process group, as daemons do.
  spawn(process.execPath, args, { stdio: "ignore", detached: left === 2 });
}
