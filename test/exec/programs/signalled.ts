/**
 * A command for tests: says `<label> up <pid>`, then `<label> <signal>` for every
 * signal it is sent, and goes on. `EXIT_ON=SIGTERM:7` makes it exit with 7 at that
 * one. With a second label it starts another of its kind in its own group.
 */
import { spawn } from "node:child_process";
import { writeSync } from "node:fs";
import { fileURLToPath } from "node:url";

const SIGNALS: readonly NodeJS.Signals[] = [
  "SIGTERM",
  "SIGINT",
  "SIGHUP",
  "SIGQUIT",
  "SIGUSR1",
  "SIGUSR2",
  "SIGWINCH",
];
const [label, ...others] = process.argv.slice(2);
const [exitOn, exitCode] = (process.env["EXIT_ON"] ?? "").split(":");

for (const signal of SIGNALS) {
  process.on(signal, () => {
    writeSync(1, `${label} ${signal}\n`);
    if (signal === exitOn) process.exit(Number(exitCode));
  });
}
if (others.length > 0)
  spawn(process.execPath, [fileURLToPath(import.meta.url), ...others], { stdio: "inherit" });
writeSync(1, `${label} up ${process.pid}\n`);
setInterval(() => {}, 60_000);
