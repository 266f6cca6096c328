/**
 * Stands, runs the command while in office, and does what was asked for
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
import { commandEnvironment, markOf } from "./environment.js";
import type { Ending, Guard } from "./guard.js";
import type { Command } from "./lookup.js";
import type { Notes } from "./notes.js";
import type { Patience } from "./patience.js";
import { perform } from "./perform.js";
import type { Relay } from "./relay.js";
import type { GuardRoom } from "./room.js";

/** How it all ended. Nothing of the command lives, and nobody holds the office for us. */
export type Outcome =
  | { readonly kind: "done"; readonly status: number }
  | { readonly kind: "lost"; readonly why: string }
  /** `--try`: someone else leads. */
  | { readonly kind: "taken" }
  /** `--timeout` has passed. */
  | { readonly kind: "late" }
  /** Told to stop while no command ran: the exit code that goes with the signal. */
  | { readonly kind: "stopped"; readonly status: number };

export interface Policy {
  readonly onExit: "stop" | "resign" | "restart";
  readonly onLoss: "wait" | "exit";
  /** One attempt to be elected. */
  readonly try: boolean;
  /** Longest wait for office. */
  readonly timeoutMs: number | undefined;
}

export interface WrapperOptions {
  readonly election: Election;
  readonly guards: GuardRoom;
  readonly relay: Relay;
  readonly notes: Notes;
  readonly patience: Patience;
  readonly policy: Policy;
  readonly command: Command;
  readonly passEnv: ReadonlySet<string>;
}

/** How a term went. `withdrawn`: told to stop before the command was started. */
type Service = Extract<Outcome, { kind: "done" | "lost" }> | { readonly kind: "withdrawn" };

const RESTART_MS = 250;
const LONGEST_RESTART_MS = 30_000;
/** A command that has lived this long has not failed to start. */
const SETTLED_MS = 10_000;

export class Wrapper {
  readonly #options: WrapperOptions;
  readonly #again: Backoff;
  /** Whether the store has accepted us once. What it refuses before that is a mistake of ours, and said at once. */
  #served = false;

  constructor(options: WrapperOptions) {
    this.#options = options;
    const { retryMs, ttlMs } = options.election.timing;
    this.#again = new Backoff(systemClock, retryMs, ttlMs);
  }

  /** Rejects if the store refuses us, or cannot be asked with `--try`. */
  async run(): Promise<Outcome> {
    const { relay, policy, guards } = this.#options;
    const unlisten = this.#listen();
    try {
      for (;;) {
        // Before anyone stands: from the first instant of a term everything that may act is listed and guarded.
        const guard = await guards.ready();
        const term = await this.#stand();
        if (term === "refused") continue;
        if ("kind" in term) return term;
        this.#served = true;
        const service = await this.#serve(term, guard);
        if (service.kind === "done" && (relay.status !== undefined || policy.onExit === "stop")) {
          return service;
        }
        if (relay.status !== undefined) return { kind: "stopped", status: relay.status };
        if (service.kind === "lost" && policy.onLoss === "exit") return service;
        if (term.lastedMs > SETTLED_MS) this.#again.reset();
        // Others go first; and a command that ends at once does not keep the store busy.
        if (service.kind === "done") await sleep(systemClock, this.#again.next(), relay.signal);
      }
    } finally {
      unlisten();
    }
  }

  /** The term, or how it ended if there is to be none. `refused`: by a store that has accepted us before; wait, and ask again. */
  async #stand(): Promise<Term | Outcome | "refused"> {
    const { election, relay, policy, notes } = this.#options;
    if (relay.status !== undefined) return { kind: "stopped", status: relay.status };
    const giveUp = new AbortController();
    const unlink = onAbort(relay.signal, () => giveUp.abort(relay.signal.reason));
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
      if (relay.status !== undefined) return { kind: "stopped", status: relay.status };
      if (late) return { kind: "late" };
      if (!this.#served) throw error;
      notes.line(errorLine(election.name, election.candidate, null, error));
      await sleep(systemClock, this.#again.next(), giveUp.signal);
      return late ? { kind: "late" } : "refused";
    } finally {
      off();
      unlink();
      timer?.cancel();
    }
  }

  /** One term. When it returns nothing of the command lives, and the office is given up or lost. */
  async #serve(term: Term, guard: Guard): Promise<Service> {
    const { relay, policy } = this.#options;
    const restart = new Backoff(systemClock, RESTART_MS, LONGEST_RESTART_MS);
    try {
      for (;;) {
        if (relay.status !== undefined) return { kind: "withdrawn" };
        if (!term.held) return { kind: "lost", why: lossOf(term) };
        const since = systemClock.now();
        const ending = await this.#perform(term, guard);
        this.#say(ending);
        if (ending.kind === "unguarded" || ending.stopped !== null) return this.#lost(ending, term);
        if (policy.onExit !== "restart" || relay.status !== undefined) {
          return { kind: "done", status: ending.status };
        }
        if (systemClock.now() - since > SETTLED_MS) restart.reset();
        await this.#pause(restart.next(), term);
      }
    } finally {
      // Nothing of the command lives: the office may be given up, if it is still ours.
      await term.resign();
    }
  }

  /** If we were told to stop, that comes first: then it is no matter that the office was lost meanwhile. */
  #lost(ending: Ending, term: Term): Service {
    const told = this.#options.relay.status;
    const why = ending.kind === "unguarded" ? "the watchdog was lost" : lossOf(term);
    if (told === undefined) return { kind: "lost", why };
    return { kind: "done", status: ending.kind === "ended" ? ending.status : told };
  }

  /** Runs the command once. */
  async #perform(term: Term, guard: Guard): Promise<Ending> {
    const { election, relay, patience, passEnv, command, notes } = this.#options;
    const notices = {
      warned: () => notes.note("leadership cannot be renewed: SIGTERM to the command, SIGKILL follows"),
      unknown: (processes: readonly string[]) => notes.note(unknownNote(processes)),
    };
    const running = perform({
      election,
      term,
      guard,
      patience,
      command,
      env: commandEnvironment(process.env, passEnv, term),
      mark: markOf(term),
      notices,
    });
    relay.attach((signal) => running.signal(signal));
    // Lost: a successor may lead already.
    const unlink = onAbort(term.signal, () => running.kill());
    const ending = await running.ended;
    unlink();
    relay.detach(ending.kind === "ended" ? ending.signal : null);
    return ending;
  }

  async #pause(delayMs: number, term: Term): Promise<void> {
    const wake = new AbortController();
    const unlinks = [term.signal, this.#options.relay.signal].map((signal) =>
      onAbort(signal, () => wake.abort()),
    );
    await sleep(systemClock, delayMs, wake.signal);
    for (const unlink of unlinks) unlink();
  }

  #say(ending: Ending): void {
    const { notes, command } = this.#options;
    const name = JSON.stringify(command[0]);
    if (ending.kind === "unguarded") notes.note(`the watchdog was lost: ${name} was killed`);
    else if (ending.failed !== null) notes.note(`${name} could not be started: ${ending.failed}`);
    else if (ending.stopped !== null) notes.note(`${name} was ended, because the office was lost`);
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
