/** One candidate of the command line: campaigns, works while it leads, and prints what happens. */
import type { Leader } from "../seam/backend.js";
import { systemClock } from "../kit/clock.js";
import type { Election } from "../election/election.js";
import type { Term } from "../api/term.js";
import { onAbort, sleep } from "../kit/wait.js";
import type { LineEvent } from "./lines.js";
import { endedLine, errorFields, errorLine, leaderLine, preciseNow, termLine } from "./lines.js";
import type { Log } from "./log.js";

export interface CandidateOptions {
  readonly election: Election;
  readonly log: Log;
  /** Ends it: the work is stopped, then leadership is given up. */
  readonly signal: AbortSignal;
  /** One piece of work each time this long has passed. `undefined`: none. */
  readonly workEveryMs?: number | undefined;
  /** What a piece of work is. Default: nothing but its line in the log. */
  readonly work?: ((term: Term) => Promise<void>) | undefined;
}

/** What happened to a candidate that stood once. */
export type Attempt = "done" | "lost" | "not-elected";

const STATUS_MS = 1_000;

export class Candidate {
  readonly #options: CandidateOptions;
  /** When the work of the last term stopped and leadership was no longer held. */
  #stoppedAt: { readonly term: Term; readonly at: number } | undefined;
  #leader: Leader | null | undefined;
  /** What keeps us from knowing who leads. */
  #trouble: string | undefined;

  constructor(options: CandidateOptions) {
    this.#options = options;
  }

  /** Campaigns again and again until the signal aborts. */
  async run(): Promise<void> {
    const { election, signal } = this.#options;
    const unlisten = this.#listen();
    const unfollow = this.#follow();
    const ticking = setInterval(() => this.#tick(), STATUS_MS);
    await election.run((term) => this.#work(term), { signal });
    clearInterval(ticking);
    await this.#close(() => {
      unlisten();
      unfollow();
    });
  }

  /** Campaigns once; if elected, leads for one term. Rejects if the store cannot be asked. */
  async once(): Promise<Attempt> {
    const { election, signal, log } = this.#options;
    const unlisten = this.#listen(); // without the leader: that is printed once, below
    const ticking = setInterval(() => this.#tick(), STATUS_MS);
    try {
      const term = await election.tryCampaign({ signal });
      if (term === null) {
        log.line(leaderLine(election.name, await election.leader({ signal })));
        return "not-elected";
      }
      await this.#work(term);
      await election.resign("the candidate was stopped");
      const { reason } = await term.ended;
      return reason === "resigned" || reason === "closed" ? "done" : "lost";
    } finally {
      clearInterval(ticking);
      await this.#close(unlisten);
    }
  }

  async #work(term: Term): Promise<void> {
    const { log, workEveryMs, work, signal } = this.#options;
    const stop = new AbortController();
    const unlinks = [term.signal, signal].map((source) => onAbort(source, () => stop.abort()));
    try {
      for (let count = 1; !stop.signal.aborted; count++) {
        if (workEveryMs === undefined) {
          await new Promise<void>((resolve) => onAbort(stop.signal, resolve));
          return;
        }
        // Asked at the last moment: after a pause this timer can run before the signal says that the term is over.
        term.assertHeld();
        await work?.(term);
        log.line({ ...termLine("work", term), count });
        await sleep(systemClock, workEveryMs, stop.signal);
      }
    } finally {
      for (const unlink of unlinks) unlink();
      // After everything that runs in the same turn: by then leadership is no longer held and not yet released.
      process.nextTick(() => (this.#stoppedAt = { term, at: preciseNow() }));
    }
  }

  #listen(): () => void {
    const { election, log } = this.#options;
    const say = (event: LineEvent, term: Term): void => log.line(termLine(event, term));
    const offs = [
      election.on("elected", ({ term }) => say("elected", term)),
      election.on("safe", ({ term }) => say("safe", term)),
      election.on("jeopardy", ({ term, error }) => {
        log.line({ ...termLine("jeopardy", term), ...errorFields(error) });
      }),
      election.on("ended", ({ term, end }) => {
        // The successor may be elected before this line is written: what counts is when we stopped.
        const stopped = end.drained && this.#stoppedAt?.term === term ? this.#stoppedAt.at : preciseNow();
        log.line(endedLine(term, end, stopped));
      }),
      election.on("error", ({ error }) => {
        this.#trouble = errorFields(error).reason;
        log.line(errorLine(election.name, election.candidate, election.term?.token ?? null, error));
      }),
    ];
    return () => offs.forEach((off) => off());
  }

  #follow(): () => void {
    const { election, log } = this.#options;
    return election.on("leader", ({ leader }) => {
      this.#leader = leader;
      this.#trouble = undefined;
      log.line(leaderLine(election.name, leader));
    });
  }

  async #close(unlisten: () => void): Promise<void> {
    await this.#options.election.close();
    unlisten();
  }

  #tick(): void {
    const { election, log } = this.#options;
    const { term } = election;
    const leading = term?.held ?? false;
    log.status({
      at: preciseNow(),
      leading,
      token: leading ? term!.token : null,
      leader: this.#leader,
      trouble: this.#trouble,
    });
  }
}
