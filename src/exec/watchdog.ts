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
import { Backstop } from "./backstop.js";
import { chooseMeans, CONTAIN_CHOICES } from "./means.js";
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

/** The backstop is told of processes that the commands have started meanwhile. */
const REARM_MS = 1_000;

const wards = new Map<number, Ward>();
let backstop: Backstop | undefined;
let rearming: NodeJS.Timeout | undefined;

function arm(): void {
  clearTimeout(rearming);
  backstop?.arm([...wards.values()].flatMap(({ charge }) => charge ?? []));
  if (wards.size > 0) rearming = setTimeout(arm, REARM_MS);
}

function tell(message: FromWatchdog): void {
  // Fails only when the wrapper is gone; then the closed channel says so.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

function hear(message: unknown): void {
  if (!isToWatchdog(message)) return;
  const { run } = message;
  const ward = wards.get(run);
  switch (message.kind) {
    case "start":
      start(run, new Ward(run, message.order, message.leave, tell));
      break;
    case "extend":
      ward?.extend(message.leave);
      break;
    case "signal":
      return ward?.signal(message.signal);
    case "kill":
      ward?.kill("lost");
      break;
  }
  arm();
}

function start(run: number, ward: Ward): void {
  wards.set(run, ward);
  void ward.over.then(() => {
    wards.delete(run);
    arm();
    if (!process.connected && wards.size === 0) backstop?.close();
  });
}

function killAll(): void {
  for (const ward of wards.values()) ward.kill("lost");
}

/** Without a wrapper nobody leads. What keeps this process alive from here on is the command alone. */
function abandoned(): void {
  killAll();
  if (wards.size === 0) backstop?.close();
}

function open(): void {
  for (const signal of DEAF_TO) process.on(signal, () => {});
  process.on("message", hear);
  process.on("disconnect", abandoned);
  process.on("uncaughtException", () => {
    killAll();
    if (process.connected) process.disconnect();
  });
  const choice = CONTAIN_CHOICES.find((known) => known === process.argv[2]) ?? "auto";
  const means = chooseMeans(choice);
  if (typeof means === "string") return tell({ kind: "ready", failed: means, means: null, backstop: null });
  backstop = new Backstop();
  tell({ kind: "ready", failed: null, means, backstop: backstop.pid ?? null });
}

if (process.send === undefined) {
  process.stderr.write("conclave: the watchdog is started by conclave itself, not by hand\n");
  process.exitCode = 2;
} else open();
