/**
 * The invariants. The monitor stands outside: it has true time, sees every node
 * at once, and asks the same public getters that user code would ask.
 */
import type { SimNode, SimProcess } from "./node.js";
import type { Rule, Violation } from "./rules.js";
import type { Scheduler } from "./scheduler.js";
import type { SubjectTerm } from "./subject.js";
import type { TermRecord } from "./term-record.js";
import type { Trace } from "./trace.js";

const SLOWEST_RATE = 0.89;
/** Timers are late by up to 30 ms here. */
const STOP_SLACK_MS = 60;

export class Monitor {
  violation: Violation | undefined;
  terms = 0;
  /** True time at which someone was last seen leading. */
  lastHeld = -Infinity;
  /** Terms that may still be held. */
  readonly #open = new Set<TermRecord>();
  readonly #byTerm = new Map<SubjectTerm, TermRecord>();
  #highest = -1n;

  ignored: ReadonlySet<Rule> = new Set();
  onOpened: (node: SimNode) => void = () => {};
  /** A candidate tries to be elected: its write is on the way. */
  onCampaigning: (node: SimNode) => void = () => {};
  /** Whether leadership was vacant, or its holder silent, not long ago; `undefined` where the store cannot tell. */
  vacancy: () => boolean | undefined = () => undefined;
  /** Whether the store still has leadership for this token; `undefined` where it cannot tell. */
  holds: (token: bigint) => boolean | undefined = () => undefined;
  /** Whether this token was ever granted; `undefined` where the store cannot tell. */
  granted: (token: bigint) => boolean | undefined = () => undefined;
  /** Whether whoever reads the record now gets the newest one, for certain. */
  vouches: () => boolean = () => false;
  /** Whether the key of this token was lost with the store's memory. */
  forgot: (token: bigint) => boolean = () => false;
  /** The store has lost its memory: tokens may begin anew, but not for a candidate that has met a higher one. */
  forgetful = false;
  #probedAt = -Infinity;

  /** `restMs`: how long not to ask the getters if nothing makes it necessary. */
  constructor(
    readonly scheduler: Scheduler,
    readonly trace: Trace,
    readonly restMs: number,
  ) {}

  violate(rule: Rule, detail: string): void {
    if (this.violation !== undefined || this.ignored.has(rule)) return;
    this.violation = { rule, detail, t: this.scheduler.now };
    this.note(`VIOLATION ${rule}: ${detail}`);
    this.scheduler.stop();
  }

  note(text: string): void {
    this.trace.note(this.scheduler.now, text);
  }

  /** A term opened: heard from its event or seen by its work, whichever was first. */
  opened(term: SubjectTerm, owner: string, process: SimProcess, met = -1n): TermRecord {
    const known = this.#byTerm.get(term);
    if (known !== undefined) return known;
    const record: TermRecord = {
      term,
      token: term.token,
      owner,
      node: process.node,
      process,
      opened: ++this.terms,
      openedAt: this.scheduler.now,
      wasHeld: true,
      deadline: undefined,
      forgotten: "nothing",
      forgottenAt: -Infinity,
      goneAt: undefined,
      overBy: Infinity,
      extendedAt: -Infinity,
      ended: false,
      work: "none",
      abortedAt: undefined,
    };
    this.note(`${owner} elected, token ${term.token}`);
    for (const other of this.#byTerm.values()) {
      if (other.owner === owner && !other.ended) {
        this.violate(
          "one-end",
          `${owner} was elected with ${term.token} before the end of ${other.token} was told`,
        );
      }
    }
    if (term.token <= met) {
      this.violate("token-order", `${owner} was elected with token ${term.token}, but had met ${met}`);
    }
    if (term.token <= this.#highest && !this.forgetful) {
      this.violate(
        "token-order",
        `${owner} was elected with token ${term.token}, but ${this.#highest} was given before`,
      );
    }
    this.#highest = term.token > this.#highest ? term.token : this.#highest;
    this.#byTerm.set(term, record);
    this.#open.add(record);
    this.onOpened(process.node);
    return record;
  }

  ended(term: SubjectTerm, owner: string, reason: string): void {
    const record = this.#byTerm.get(term);
    if (record === undefined)
      return this.violate("one-end", `${owner} was told the end of ${term.token}, which never began`);
    this.note(`${owner} ended ${term.token}: ${reason}`);
    // The keys of a store that went back are not trusted, though they may be there.
    if (reason === "revoked" && !this.forgetful && this.holds(term.token) === true) {
      this.violate("false-loss", `${owner} was told that ${term.token} is lost, but the store still had it`);
    }
    if (record.ended) this.violate("one-end", `${owner} was told twice that ${term.token} ended`);
    record.ended = true;
    if (term.held)
      this.violate("held-after-end", `${owner} still had token ${term.token} after its end was told`);
    this.#open.delete(record);
  }

  /** Its process died: it holds nothing, and no end will be told. */
  forget(process: SimProcess): void {
    for (const record of this.#byTerm.values()) {
      if (record.process !== process) continue;
      record.ended = true;
      this.#open.delete(record);
    }
  }

  /** The newest: a store that has lost its memory can give a token twice. */
  recordOf(token: bigint, owner: string): TermRecord | undefined {
    return [...this.#byTerm.values()].findLast((record) => record.token === token && record.owner === owner);
  }

  /** Whose token it is, as far as its term has opened. */
  termOf(token: bigint): TermRecord | undefined {
    for (const record of this.#byTerm.values()) if (record.token === token) return record;
    return undefined;
  }

  /** Terms of this owner whose end was not told. */
  unended(owner: string): TermRecord[] {
    return [...this.#byTerm.values()].filter((record) => record.owner === owner && !record.ended);
  }

  /** Whoever is leading at this instant. */
  leader(): TermRecord | undefined {
    for (const record of this.#open) if (record.node.running && record.term.held) return record;
    return undefined;
  }

  /** Asks every running node whether it leads. `true` if the asking itself ended a term. */
  probe(now: boolean): boolean {
    if (!now && this.scheduler.now < this.#probedAt + this.restMs) return false;
    this.#probedAt = this.scheduler.now;
    let disturbed = false;
    let holder: TermRecord | undefined;
    for (const record of this.#open) {
      if (!record.node.running) continue;
      this.#checkStop(record);
      const held = record.term.held;
      if (record.wasHeld && !held) disturbed = true;
      if (!record.wasHeld && held)
        this.violate("held-after-end", `${record.owner} held ${record.token} again after it had not`);
      record.wasHeld = held;
      // Not promised after amnesia: a store that has forgotten a leader elects another, and the first one cannot know
      // before its next renewal. That it ends then is a rule of its own (`late-loss`, `false-extension`).
      if (!held || record.forgotten !== "nothing" || this.forgot(record.token)) continue;
      if (holder !== undefined) {
        this.violate(
          "two-leaders",
          `${holder.owner} (token ${holder.token}) and ${record.owner} (token ${record.token}) both held leadership`,
        );
      }
      holder = record;
    }
    if (holder !== undefined) this.lastHeld = this.scheduler.now;
    return disturbed;
  }

  /** The key of this token is gone. */
  gone(token: bigint): void {
    for (const record of this.#open) {
      if (record.token === token) record.goneAt ??= record.node.oscillator.mono(this.scheduler.now);
    }
  }

  /** The store has lost its memory. */
  lostMemory(): void {
    this.forgetful = true;
    for (const record of this.#open) {
      record.forgottenAt = record.node.oscillator.mono(this.scheduler.now);
      if (record.forgotten !== "term") record.forgotten = "extension";
      if (!this.forgot(record.token)) continue;
      record.forgotten = "term";
      this.gone(record.token);
    }
  }

  /** The store extended this term by a question of this instant, and by the node's own reckoning this much is left of it. */
  extended(record: TermRecord, askedAt: number, leftMs: number): void {
    const { node, goneAt } = record;
    // A write that was under way while the store went back can bring the record back: then the store has it again.
    const again = record.forgotten === "term" && !this.forgot(record.token);
    if (goneAt !== undefined && askedAt > goneAt && !again)
      this.violate("false-extension", `${record.owner} had ${record.token} extended after its key was gone`);
    if (record.forgotten === "extension" && askedAt > record.forgottenAt) record.forgotten = "nothing";
    const deadline = node.oscillator.mono(this.scheduler.now) + leftMs;
    // Answers overtake each other: an older question moves nothing back.
    if (record.deadline !== undefined && deadline < record.deadline) return;
    record.deadline = deadline;
    record.extendedAt = this.scheduler.now;
    record.overBy = this.scheduler.now + leftMs / SLOWEST_RATE + STOP_SLACK_MS;
  }

  /** Before the getter is asked: had it to end the term itself, although the timers could have? */
  #checkStop(record: TermRecord): void {
    const { term, node } = record;
    const { now } = this.scheduler;
    // Timers do not count the sleep of a machine either: there only the getters are quick.
    if (term.signal.aborted || node.suspendedAt > record.extendedAt) return;
    if (now > record.overBy && now > node.turningSince + STOP_SLACK_MS && node.turning) {
      this.violate(
        "late-stop",
        `${record.owner} was not told to stop although the time of ${record.token} was over`,
      );
    }
  }
}
