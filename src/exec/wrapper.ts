/**
 * Campaigns, runs the command while leading, and does what was asked for
 * afterwards. At any moment one of these is true: no command lives; or the
 * watchdog guards it and knows until when; or the watchdog is dead and we are
 * killing the command.
 */
import { Backoff } from "../kit/backoff.js";
import { systemClock } from "../kit/clock.js";
import type { Election } from "../election/election.js";
import type { Term } from "../api/term.js";
import { onAbort, sleep } from "../kit/wait.js";
import { endedLine, errorFields, errorLine, leaderLine, preciseNow, termLine } from "../terminal/lines.js";
import { commandEnvironment, processMarkOf } from "./environment.js";
import type { CommandEnd } from "./watchdog-client.js";
import type { Command } from "./lookup.js";
import type { Notes } from "./notes.js";
import type { StopBudget } from "./stop-budget.js";
import { runCommand } from "./run-command.js";
import type { CommandRun } from "./run-command.js";
import type { SignalForwarder } from "./signal-forwarder.js";

/** How the wrapper ended. No process of the command is left, and leadership is given up or lost. */
export type WrapperResult =
  | { readonly kind: "done"; readonly status: number }
  /** `asked`: given up on request, not lost. */
  | { readonly kind: "lost"; readonly why: string; readonly asked?: boolean }
  /** `--try`: someone else leads. */
  | { readonly kind: "taken" }
  /** `--timeout` has passed. */
  | { readonly kind: "late" }
  /** Told to stop while no command ran: the exit code that goes with the signal. */
  | { readonly kind: "stopped"; readonly status: number };

export interface WrapperPolicy {
  readonly onExit: "stop" | "resign" | "restart";
  readonly onLoss: "wait" | "exit";
  /** One attempt to be elected. */
  readonly try: boolean;
  /** Longest wait to be elected. */
  readonly timeoutMs: number | undefined;
}

export interface WrapperOptions {
  readonly election: Election;
  /** A watchdog that lives, started anew if the last one has died. */
  readonly watchdogs: { ready(): Promise<CommandRun["watchdog"]> };
  readonly forwarder: SignalForwarder;
  readonly notes: Notes;
  readonly stopBudget: StopBudget;
  readonly policy: WrapperPolicy;
  readonly command: Command;
  readonly passEnv: ReadonlySet<string>;
}

/** How a term went. `withdrawn`: told to stop before the command was started. */
type TermResult = Extract<WrapperResult, { kind: "done" | "lost" }> | { readonly kind: "withdrawn" };

const RESTART_MS = 250;
const LONGEST_RESTART_MS = 30_000;
/** A command that has lived this long has not failed to start. */
const SETTLED_MS = 10_000;

export class Wrapper {
  readonly #options: WrapperOptions;
  readonly #again: Backoff;
  /** Whether the store has accepted us once. What it refuses before that is a mistake of ours, and said at once. */
  #accepted = false;

  constructor(options: WrapperOptions) {
    this.#options = options;
    const { retryMs, ttlMs } = options.election.timing;
    this.#again = new Backoff(systemClock, retryMs, ttlMs);
  }

  /** Rejects if the store refuses us, or cannot be asked with `--try`. */
  async run(): Promise<WrapperResult> {
    const { forwarder, policy, watchdogs } = this.#options;
    const unlisten = this.#listen();
    try {
      for (;;) {
        // Before campaigning: from the start of a term every process that may act is listed and guarded.
        const watchdog = await watchdogs.ready();
        const term = await this.#campaign();
        if (term === "refused") continue;
        if ("kind" in term) return term;
        this.#accepted = true;
        const service = await this.#runTerm(term, watchdog);
        if (service.kind === "done" && (forwarder.status !== undefined || policy.onExit === "stop")) {
          return service;
        }
        if (forwarder.status !== undefined) return { kind: "stopped", status: forwarder.status };
        if (service.kind === "lost" && policy.onLoss === "exit") return service;
        if (term.lastedMs > SETTLED_MS) this.#again.reset();
        // Others go first; and a command that ends at once does not keep the store busy.
        if (service.kind === "done" || (service.kind === "lost" && service.asked === true))
          await sleep(systemClock, this.#again.next(), forwarder.signal);
      }
    } finally {
      unlisten();
    }
  }

  /** The term, or how it ended if there is to be none. `refused`: by a store that has accepted us before; wait, and ask again. */
  async #campaign(): Promise<Term | WrapperResult | "refused"> {
    const { election, forwarder, policy, notes } = this.#options;
    if (forwarder.status !== undefined) return { kind: "stopped", status: forwarder.status };
    const giveUp = new AbortController();
    const unlink = onAbort(forwarder.signal, () => giveUp.abort(forwarder.signal.reason));
    let late = false;
    const expire = (): void => {
      late = true;
      giveUp.abort(new Error("not elected in time"));
    };
    const timer = policy.timeoutMs === undefined ? undefined : systemClock.after(policy.timeoutMs, expire);
    const off = election.on("leader", ({ leader }) => {
      if (leader !== null) notes.line(leaderLine(election.name, leader));
    });
    try {
      const { signal } = giveUp;
      const term = policy.try ? await election.tryCampaign({ signal }) : await election.campaign({ signal });
      return term ?? { kind: "taken" };
    } catch (error) {
      if (forwarder.status !== undefined) return { kind: "stopped", status: forwarder.status };
      if (late) return { kind: "late" };
      if (!this.#accepted) throw error;
      notes.line(errorLine(election.name, election.candidate, null, error));
      await sleep(systemClock, this.#again.next(), giveUp.signal);
      return late ? { kind: "late" } : "refused";
    } finally {
      off();
      unlink();
      timer?.cancel();
    }
  }

  /** One term. When it returns no process of the command is left, and leadership is given up or lost. */
  async #runTerm(term: Term, watchdog: CommandRun["watchdog"]): Promise<TermResult> {
    const { forwarder, policy } = this.#options;
    const restart = new Backoff(systemClock, RESTART_MS, LONGEST_RESTART_MS);
    try {
      for (;;) {
        if (forwarder.status !== undefined) return { kind: "withdrawn" };
        if (!term.held) return { kind: "lost", why: lossOf(term) };
        const since = systemClock.now();
        const ending = await this.#runCommand(term, watchdog);
        this.#say(ending);
        if (ending.kind === "unguarded" || ending.stopped !== null) return this.#lost(ending, term);
        // Asked to resign: the command was ended by us, whatever its exit code says.
        if (term.signal.aborted && forwarder.status === undefined)
          return { kind: "lost", why: "the leader was asked to resign", asked: true };
        if (policy.onExit !== "restart" || forwarder.status !== undefined) {
          return { kind: "done", status: ending.status };
        }
        if (systemClock.now() - since > SETTLED_MS) restart.reset();
        await this.#pause(restart.next(), term);
      }
    } finally {
      // No process of the command is left: leadership may be given up, if it is still ours.
      await this.#options.election.resign(
        forwarder.told === undefined ? "the command has ended" : `told to stop: ${forwarder.told}`,
      );
    }
  }

  /** A signal to stop takes precedence: then the loss of leadership meanwhile is not reported. */
  #lost(ending: CommandEnd, term: Term): TermResult {
    const told = this.#options.forwarder.status;
    const why = ending.kind === "unguarded" ? "the watchdog was lost" : lossOf(term);
    if (told === undefined) return { kind: "lost", why };
    return { kind: "done", status: ending.kind === "ended" ? ending.status : told };
  }

  /** Runs the command once. */
  async #runCommand(term: Term, watchdog: CommandRun["watchdog"]): Promise<CommandEnd> {
    const { election, forwarder, stopBudget, passEnv, command, notes } = this.#options;
    const notices = {
      warned: () => notes.note("leadership cannot be renewed: SIGTERM to the command, SIGKILL follows"),
      unknown: (processes: readonly string[]) => notes.note(unknownNote(processes)),
    };
    const running = runCommand({
      election,
      term,
      watchdog,
      stopBudget,
      command,
      env: commandEnvironment(process.env, passEnv, term),
      mark: processMarkOf(term),
      notices,
    });
    forwarder.attach((signal) => running.signal(signal));
    const unlink = onAbort(term.signal, () => this.#endCommand(term, running));
    const ending = await running.ended;
    unlink();
    forwarder.detach(ending.kind === "ended" ? ending.signal : null);
    return ending;
  }

  /** Lost: a successor may lead already. Asked to resign: the lease is renewed meanwhile, and the command has its grace. */
  #endCommand(term: Term, running: ReturnType<typeof runCommand>): void {
    if (!term.held) return running.kill();
    const { notes, stopBudget } = this.#options;
    notes.note("asked to resign: SIGTERM to the command, SIGKILL follows");
    running.signal("SIGTERM");
    const timer = systemClock.after(stopBudget.graceMs, () => running.kill());
    void running.ended.then(() => timer.cancel());
  }

  async #pause(delayMs: number, term: Term): Promise<void> {
    const wake = new AbortController();
    const unlinks = [term.signal, this.#options.forwarder.signal].map((signal) =>
      onAbort(signal, () => wake.abort()),
    );
    await sleep(systemClock, delayMs, wake.signal);
    for (const unlink of unlinks) unlink();
  }

  #say(ending: CommandEnd): void {
    const { notes, command } = this.#options;
    const name = JSON.stringify(command[0]);
    if (ending.kind === "unguarded") notes.note(`the watchdog was lost: ${name} was killed`);
    else if (ending.failed !== null) notes.note(`${name} could not be started: ${ending.failed}`);
    else if (ending.stopped !== null) notes.note(`${name} was killed because leadership was lost`);
    else notes.note(`${name} ended with ${ending.signal ?? ending.status}`);
  }

  #listen(): () => void {
    const { election, notes } = this.#options;
    const offs = [
      election.on("elected", ({ term }) => notes.line(termLine("elected", term))),
      election.on("safe", ({ term }) => notes.line(termLine("safe", term))),
      election.on("jeopardy", ({ term, error }) => {
        notes.line({ ...termLine("jeopardy", term), ...errorFields(error) });
      }),
      election.on("ended", ({ term, end }) => notes.line(endedLine(term, end, preciseNow()))),
      election.on("error", ({ error }) => {
        notes.line(errorLine(election.name, election.candidate, election.term?.token ?? null, error));
      }),
    ];
    return () => offs.forEach((off) => off());
  }
}

/** SIGTERM comes before the deadline: then the term is still held when the command has obeyed. */
function lossOf(term: Term): string {
  return term.end?.detail ?? "it could not be renewed in time";
}

function unknownNote(processes: readonly string[]): string {
  return (
    `the command has ended, but it is not known whether these processes belong to it: ${processes.join(", ")}; ` +
    "leadership is kept until they have ended"
  );
}
