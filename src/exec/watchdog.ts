/**
 * The watchdog: a process of its own, started by `conclave exec`, `lock` and
 * `cron` before they campaign. It starts the command (`cron` may have several)
 * and kills it if the wrapper dies (the channel closes) or is stopped (the
 * deadline passes). It exits only when no process of the command is left: if
 * wrapper and watchdog are dead, the command is dead too.
 *
 * It holds stdin, stdout and stderr for the command and never touches them.
 */
import type { FromWatchdog } from "./wire.js";
import { isToWatchdog } from "./wire.js";
import { Backstop } from "./backstop.js";
import { chooseContainment, CONTAIN_CHOICES } from "./containment-method.js";
import { GuardedCommand } from "./guarded-command.js";

/** Ignore broadcast signals (pkill, a service manager); the watchdog exits once the command is gone. */
const IGNORED_SIGNALS: readonly NodeJS.Signals[] = [
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

/** How often the backstop gets the list of processes that the commands have started meanwhile. */
const REARM_MS = 1_000;

const commands = new Map<number, GuardedCommand>();
let backstop: Backstop | undefined;
let rearming: NodeJS.Timeout | undefined;

function arm(): void {
  clearTimeout(rearming);
  backstop?.arm([...commands.values()].flatMap(({ charge }) => charge ?? []));
  if (commands.size > 0) rearming = setTimeout(arm, REARM_MS);
}

function tell(message: FromWatchdog): void {
  // Fails only when the wrapper is gone; then the closed channel says so.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

function hear(message: unknown): void {
  if (!isToWatchdog(message)) return;
  const { run } = message;
  const command = commands.get(run);
  switch (message.kind) {
    case "start":
      start(run, new GuardedCommand(run, message.order, message.deadline, tell));
      break;
    case "extend":
      command?.extend(message.deadline);
      break;
    case "signal":
      return command?.signal(message.signal);
    case "kill":
      command?.kill("lost");
      break;
  }
  arm();
}

function start(run: number, command: GuardedCommand): void {
  commands.set(run, command);
  void command.over.then(() => {
    commands.delete(run);
    arm();
    if (!process.connected && commands.size === 0) backstop?.close();
  });
}

function killAll(): void {
  for (const command of commands.values()) command.kill("lost");
}

/** Without a wrapper nobody leads. From here on only the command keeps this process alive. */
function abandoned(): void {
  killAll();
  if (commands.size === 0) backstop?.close();
}

function open(): void {
  for (const signal of IGNORED_SIGNALS) process.on(signal, () => {});
  process.on("message", hear);
  process.on("disconnect", abandoned);
  process.on("uncaughtException", () => {
    killAll();
    if (process.connected) process.disconnect();
  });
  const choice = CONTAIN_CHOICES.find((known) => known === process.argv[2]) ?? "auto";
  const method = chooseContainment(choice);
  if (typeof method === "string")
    return tell({ kind: "ready", failed: method, method: null, backstop: null });
  backstop = new Backstop();
  tell({ kind: "ready", failed: null, method, backstop: backstop.pid ?? null });
}

if (process.send === undefined) {
  process.stderr.write("conclave: the watchdog is started by conclave itself, not by hand\n");
  process.exitCode = 2;
} else open();
