/** One candidate, one flow of calls, and everything that must hold whatever strikes it. */
import { channel } from "node:diagnostics_channel";
import { getEventListeners } from "node:events";
import type { Clock } from "../../../src/seam/clock.js";
import { Election, Lock } from "../../../src/index.js";
import type { Term, TermEnd } from "../../../src/index.js";
import { VirtualClock } from "../../../src/testing/index.js";
import { ScriptedBackend } from "./scripted-backend.js";
import type { Flow } from "./flows.js";

export const TTL_MS = 3_000;
export const DRAIN_MS = 1_000;

interface Told {
  readonly term: Term;
  elected: number;
  ended: number;
}

/** Counts the timers that one user of a clock has set. */
function counted(clock: VirtualClock): { readonly clock: Clock; readonly pending: Set<object> } {
  const pending = new Set<object>();
  const after: Clock["after"] = (delayMs, callback) => {
    const mark = {};
    pending.add(mark);
    const timer = clock.after(delayMs, () => {
      pending.delete(mark);
      callback();
    });
    return {
      cancel: () => {
        pending.delete(mark);
        timer.cancel();
      },
    };
  };
  const { now, wall, boot, random, uniqueId } = VirtualClock.prototype;
  return {
    pending,
    clock: {
      after,
      now: now.bind(clock),
      wall: wall.bind(clock),
      boot: boot.bind(clock),
      random: random.bind(clock),
      uniqueId: uniqueId.bind(clock),
    },
  };
}

export class Scene {
  readonly clock = new VirtualClock();
  readonly backend: ScriptedBackend;
  /** What is struck: the one or the other. */
  readonly subject: Election | Lock;
  /** The caller's own signal. */
  readonly stop = new AbortController();
  /** Terms that a caller was given to resign itself. */
  readonly given = new Set<Term>();
  readonly violations: string[] = [];
  dispose = (): void => {};
  readonly #timers: Set<object>;
  readonly #told = new Map<bigint, Told>();
  readonly #working = new Map<bigint, Term>();
  readonly #begun = new Set<bigint>();
  #closing: Promise<void> | undefined;
  #closed = false;

  constructor({ script, kind, maxTermMs }: Pick<Flow, "script" | "kind" | "maxTermMs">) {
    const { clock, pending } = counted(this.clock);
    this.#timers = pending;
    this.backend = new ScriptedBackend(this.clock, script);
    this.backend.onCall = (what, token) => this.#called(what, token);
    const options = { name: "e", backend: this.backend, ttlMs: TTL_MS, drainMs: DRAIN_MS, clock };
    this.subject = kind === "lock" ? new Lock(options) : new Election({ ...options, maxTermMs });
    if (this.subject instanceof Election) {
      this.subject.on("elected", ({ term }) => this.#elected(term));
      this.subject.on("ended", ({ term, end }) => this.#ended(term, end));
    } else this.#listenToLock();
  }

  get election(): Election {
    if (this.subject instanceof Election) return this.subject;
    throw new Error("this scene has a lock");
  }

  get lock(): Lock {
    if (this.subject instanceof Lock) return this.subject;
    throw new Error("this scene has an election");
  }

  /** How many terms have begun. */
  get terms(): number {
    return this.#told.size;
  }

  get term(): Term | undefined {
    return this.subject.term;
  }

  /** Time as the flow's own code sees it. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.clock.after(ms, resolve);
    });
  }

  /** Work that stops when it is told to, or after `forMs`, and takes `hops` more microtasks for it. */
  async work(term: Term, forMs: number, hops: number): Promise<void> {
    const { token } = term;
    if (this.#closed) this.violate(`work of ${token} began after close() had resolved`);
    if (this.#begun.has(token)) this.violate(`work of ${token} began twice`);
    if (!term.held) this.violate(`work of ${token} began without a term`);
    if (term.signal.aborted) this.violate(`work of ${token} began though it had been told to stop`);
    this.#begun.add(token);
    this.#working.set(token, term);
    await new Promise<void>((resolve) => {
      term.signal.addEventListener("abort", () => resolve(), { once: true });
      if (term.signal.aborted) resolve();
      this.clock.after(forMs, resolve);
    });
    for (let i = 0; i < hops; i++) await Promise.resolve();
    this.#working.delete(token);
  }

  close(): Promise<void> {
    this.#closing ??= this.subject.close().then(
      () => this.#hasClosed(),
      (error: unknown) => this.violate(`close() rejected: ${String(error)}`),
    );
    return this.#closing;
  }

  /** Gives up whatever is held at this moment; when that has resolved, it must be gone. */
  resign(): void {
    const { term } = this;
    const { subject } = this;
    const resigned = subject instanceof Lock ? subject.release() : subject.resign();
    resigned.then(
      () => {
        if (term === undefined) return;
        if (term.held) this.violate(`${term.token} is held after resign() has resolved`);
        if (term.end === undefined) this.violate(`${term.token} has no end after resign() has resolved`);
        this.#checkGivenBack(`after resign() has resolved`, (token) => token === term.token);
      },
      (error: unknown) => this.violate(`resign() rejected: ${String(error)}`),
    );
  }

  /** The same by the term's own means. Inside `run()` this only begins the end. */
  resignTerm(): void {
    this.term?.resign().catch((error: unknown) => this.violate(`term.resign() rejected: ${String(error)}`));
  }

  revoke(): void {
    this.backend.holds.at(-1)?.revoke();
  }

  /** The flow has come to its end, and time has passed: only what a caller was given may still be held. */
  checkSettled(): void {
    const given = new Set([...this.given].map(({ token }) => token));
    this.#checkGivenBack("though no caller has it", (token) => !given.has(token));
    for (const { token } of this.backend.holds)
      if (!given.has(token) && this.term?.token === token && this.term.held)
        this.violate(`${token} is held though no caller has it`);
    const listening = getEventListeners(this.stop.signal, "abort").length;
    if (listening > 0) this.violate(`${listening} listeners are left on the caller's signal`);
  }

  /** All is closed. */
  checkEnd(): void {
    if (!this.#closed) this.violate("close() has not resolved");
    this.#checkNothingLeft("at the end");
    for (const { term, elected, ended } of this.#told.values()) {
      if (elected !== 1 || ended !== 1)
        this.violate(`${term.token}: ${elected} elected and ${ended} ended events`);
      if (!term.signal.aborted) this.violate(`the signal of ${term.token} has not aborted`);
    }
    for (const token of this.#working.keys()) this.violate(`work of ${token} has not settled`);
  }

  violate(what: string): void {
    this.violations.push(what);
  }

  #hasClosed(): void {
    this.#closed = true;
    this.#checkNothingLeft("when close() has resolved");
  }

  #checkNothingLeft(when: string): void {
    this.#checkHeld(when);
    this.#checkGivenBack(when, () => true);
    if (this.#timers.size > 0) this.violate(`${this.#timers.size} timers are set ${when}`);
    if (this.backend.underWay > 0) this.violate(`${this.backend.underWay} calls are under way ${when}`);
  }

  #checkHeld(when: string): void {
    const terms = new Set([...this.given, ...[...this.#told.values()].map(({ term }) => term)]);
    if (this.term !== undefined) terms.add(this.term);
    for (const term of terms) {
      if (term.held) this.violate(`${term.token} is held ${when}`);
      if (term.end === undefined) this.violate(`${term.token} has no end ${when}`);
    }
  }

  /** What was granted is given back, unless it was lost. */
  #checkGivenBack(when: string, concerns: (token: bigint) => boolean): void {
    for (const { token, released, lost } of this.backend.holds) {
      // What never became a term is given back with one try; else it runs out.
      if (this.backend.script.failedReleases > 0 && !this.#told.has(token)) continue;
      const expired = this.#told.get(token)?.term.end?.reason === "expired";
      if (concerns(token) && !released && !lost && !expired)
        this.violate(`${token} is not given back ${when}`);
    }
  }

  #called(what: string, token: bigint | undefined): void {
    if (this.#closed) this.violate(`the store was asked to ${what} after close() had resolved`);
    if (what !== "release" || token === undefined) return;
    // What is being given up may run out meanwhile: then it is nobody's, and the record may be vacated.
    if (this.#working.has(token) && this.#working.get(token)?.end?.drained !== false)
      this.violate(`${token} was given back while its work ran`);
  }

  #tell(term: Term): Told {
    const told = this.#told.get(term.token) ?? { term, elected: 0, ended: 0 };
    this.#told.set(term.token, told);
    return told;
  }

  #elected(term: Term): void {
    this.#tell(term).elected++;
  }

  #ended(term: Term, end: TermEnd): void {
    const told = this.#tell(term);
    told.ended++;
    if (told.elected === 0) this.violate(`the end of ${term.token} was told before its beginning`);
    if (term.held) this.violate(`${term.token} is held after its end was told`);
    if (term.end !== end) this.violate(`${term.token} was told another end than it had`);
  }

  /** A lock keeps its election to itself; what that tells can be heard all the same. */
  #listenToLock(): void {
    const elected = (message: unknown): void => this.#elected((message as { term: Term }).term);
    const ended = (message: unknown): void => {
      const { term, end } = message as { term: Term; end: TermEnd };
      this.#ended(term, end);
    };
    channel("conclave:elected").subscribe(elected);
    channel("conclave:ended").subscribe(ended);
    this.dispose = () => {
      channel("conclave:elected").unsubscribe(elected);
      channel("conclave:ended").unsubscribe(ended);
    };
  }
}
