/**
 * The watchdog: a process of its own, started by `conclave exec`, `lock` and
 * `cron` before they stand. It starts the command (of `cron` there may be several), and ends it if the wrapper dies (the channel
 * closes) or is stopped (the deadline passes). It leaves only when nothing of
 * the command lives, so whoever sees wrapper and watchdog dead knows that the
 * command is dead too.
 *
 * It holds stdin, stdout and stderr for the command and never touches them.
 */
import type { FromWatchdog } from "./wire.js";
import { isToWatchdog } from "./wire.js";
import { Ward } from "./ward.js";

/** Whoever signals all processes of a kind (pkill, a service manager) does not mean this one: it leaves by itself. */
const DEAF_TO: readonly NodeJS.Signals[] = [
  "SIGTERM",
  "SIGINT",
  "SIGHUP",
  "SIGQUIT",
  "SIGUSR1",
  "SIGUSR2",
  "SIGTSTP",
  "SIGTTIN",
  "SIGTTOU",
  "SIGALRM",
];

const wards = new Map<number, Ward>();

function tell(message: FromWatchdog): void {
  // Fails only when the wrapper is gone; then the closed channel says so.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

function hear(message: unknown): void {
  if (!isToWatchdog(message)) return;
  const { run } = message;
  if (message.kind === "start") {
    const ward = new Ward(run, message.order, message.leave, tell);
    wards.set(run, ward);
    void ward.over.then(() => wards.delete(run));
    return;
  }
  const ward = wards.get(run);
  if (message.kind === "extend") ward?.extend(message.leave);
  else if (message.kind === "signal") ward?.signal(message.signal);
  else ward?.kill("lost");
}

function killAll(): void {
  for (const ward of wards.values()) ward.kill("lost");
}

if (process.send === undefined) {
  process.stderr.write("conclave: the watchdog is started by conclave itself, not by hand\n");
  process.exitCode = 2;
} else {
  for (const signal of DEAF_TO) process.on(signal, () => {});
  process.on("message", hear);
  // Without a wrapper there is no office. What keeps this process alive from here on is the command alone.
  process.on("disconnect", killAll);
  process.on("uncaughtException", () => {
    killAll();
    if (process.connected) process.disconnect();
  });
  tell({ kind: "ready" });
}
