/**
 * Stands, runs the command while in office, and does what was asked for
 * afterwards. At any moment one of these is true: no command lives; or the
 * watchdog guards it and knows until when; or the watchdog is dead and we are
 * killing the command.
 */
import { Backoff } from "../../core/backoff.js";
import { systemClock } from "../../core/clock.js";
import type { Election } from "../../core/election.js";
import type { Term } from "../../core/term.js";
import { onAbort, sleep } from "../../core/waiting.js";
import { endedLine, errorFields, errorLine, leaderLine, preciseNow, termLine } from "../lines.js";
import { commandEnvironment, markOf, watchdogEnvironment } from "./environment.js";
import { Guard } from "./guard.js";
import type { Ending } from "./guard.js";
import { leaveOf } from "./leave.js";
import type { Notes } from "./notes.js";
import type { Patience } from "./patience.js";
import type { Relay } from "./relay.js";

/** Exit codes of our own. Below 120 they would be mistaken for the command's. */
export const OWN_EXIT = { lost: 120, notElected: 121, timeout: 124, failed: 125 } as const;

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
  readonly command: readonly [string, ...string[]];
  readonly passEnv: ReadonlySet<string>;
}

/** How a term went. */
type Service =
  | { readonly kind: "done"; readonly status: number }
  | { readonly kind: "lost" }
  /** Told to stop before the command was started. */
  | { readonly kind: "withdrawn" };

const RESTART_MS = 250;
const LONGEST_RESTART_MS = 30_000;
/** A command that has lived this long has not failed to start. */
const SETTLED_MS = 10_000;

/** The watchdog of the moment. */
export class GuardRoom {
  #guard: Guard | undefined;

  /** Processes that must be dead before nobody acts for this candidate. */
  get pids(): readonly number[] {
    return this.#guard?.pid === undefined ? [] : [this.#guard.pid];
  }

  /** A watchdog that lives. */
  async ready(): Promise<Guard> {
    if (this.#guard?.alive !== true) this.#guard = await Guard.open(watchdogEnvironment(process.env));
    return this.#guard;
  }

  async close(): Promise<void> {
    await this.#guard?.close();
  }
}

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

  /** Returns the exit code. Rejects if the store refuses us, or cannot be asked with `--try`. */
  async run(): Promise<number> {
    const { relay, policy, guards } = this.#options;
    const unlisten = this.#listen();
    try {
      for (;;) {
        // Before anyone stands: from the first instant of a term everything that may act is listed and guarded.
        const guard = await guards.ready();
        const term = await this.#stand();
        if (term === "refused") continue;
        if (typeof term === "number") return term;
        this.#served = true;
        const service = await this.#serve(term, guard);
        if (service.kind === "done" && (relay.status !== undefined || policy.onExit === "stop")) {
          return service.status;
        }
        if (relay.status !== undefined) return relay.status;
        if (service.kind === "lost" && policy.onLoss === "exit") return OWN_EXIT.lost;
        if (term.lastedMs > SETTLED_MS) this.#again.reset();
        // Others go first; and a command that ends at once does not keep the store busy.
        if (service.kind === "done") await sleep(systemClock, this.#again.next(), relay.signal);
      }
    } finally {
      unlisten();
    }
  }

  /** The term, or the exit code if there is to be none. `refused`: by a store that has accepted us before; wait, and ask again. */
  async #stand(): Promise<Term | number | "refused"> {
    const { election, relay, policy, notes } = this.#options;
    if (relay.status !== undefined) return relay.status;
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
      return term ?? OWN_EXIT.notElected;
    } catch (error) {
      if (relay.status !== undefined) return relay.status;
      if (late) return OWN_EXIT.timeout;
      if (!this.#served) throw error;
      notes.line(errorLine(election.name, election.candidate, null, error));
      await sleep(systemClock, this.#again.next(), giveUp.signal);
      return late ? OWN_EXIT.timeout : "refused";
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
        if (!term.held) return { kind: "lost" };
        const since = systemClock.now();
        const ending = await this.#perform(term, guard);
        this.#say(ending);
        if (ending.kind === "unguarded" || ending.stopped !== null) return this.#lost(ending);
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
  #lost(ending: Ending): Service {
    const told = this.#options.relay.status;
    if (told === undefined) return { kind: "lost" };
    return { kind: "done", status: ending.kind === "ended" ? ending.status : told };
  }

  /** Runs the command once. */
  async #perform(term: Term, guard: Guard): Promise<Ending> {
    const { election, relay, patience, passEnv, command, notes } = this.#options;
    const { graceMs, reserveMs, silenceMs } = patience;
    const [file, ...args] = command;
    const env = commandEnvironment(process.env, passEnv, term);
    const order = {
      command: file,
      args,
      env,
      mark: markOf(term),
      graceMs,
      marginMs: election.timing.marginMs,
    };
    const warned = (): void =>
      notes.note("the office cannot be renewed: SIGTERM to the command, SIGKILL follows");
    const running = guard.start(order, leaveOf(term, reserveMs), { warned, silenceMs });
    relay.attach((signal) => guard.signal(signal));
    const off = election.on("renewal", (renewal) => {
      if (renewal.ok && renewal.term === term) guard.extend(leaveOf(term, reserveMs));
    });
    // Lost: a successor may lead already.
    const unlink = onAbort(term.signal, () => guard.kill());
    let by: NodeJS.Signals | null = null;
    try {
      const ending = await running;
      if (ending.kind === "ended") by = ending.signal;
      return ending;
    } finally {
      unlink();
      off();
      relay.detach(by);
    }
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
