/**
 * What runs on a node: one election, what is done leading, and a follower of
 * who leads. All of it dies with its process.
 */
import { isConclaveError } from "../../kit/errors.js";
import { bounded, onAbort } from "../../kit/wait.js";
import type { Claim } from "../../seam/backend.js";
import { watchCallRate } from "./call-rate.js";
import { BURST } from "./election-work.js";
import { SimClock } from "./clock.js";
import type { WorkloadHost, Workload, WorkloadFactory } from "./workload.js";
import type { Monitor } from "./monitor.js";
import type { TermRecord } from "./term-record.js";
import type { SimProcess } from "./node.js";
import type { Plan } from "./plan.js";
import type { Random } from "./random.js";
import type { FencedResource } from "./resource.js";
import { spied } from "./spy.js";
import { ELECTION } from "./store-parts.js";
import type { Connection } from "./store-parts.js";
import type { Subject, SubjectTerm } from "./subject.js";
import { Misbehaviour } from "./misbehaviour.js";
import { standingOf } from "./succession-plan.js";

export interface SimCandidateOptions {
  readonly process: SimProcess;
  readonly election: string;
  /** Tells one election of a process from the next. */
  readonly serial: number;
  readonly plan: Plan;
  readonly monitor: Monitor;
  readonly resource: FencedResource;
  readonly workload: WorkloadFactory;
  readonly connect: (clock: SimClock, process: SimProcess, purpose: string) => Connection;
  /** The highest token of others that this candidate has met in the store. */
  readonly met: (candidate: string | undefined) => bigint;
  /** Told of every term that began, and under which name. */
  readonly led: (term: TermRecord, candidate: string | undefined) => void;
  /** `asked`: for the plan. */
  readonly handing: (from: SimCandidate, token: bigint, heir: string, asked: boolean) => unknown;
}

export class SimCandidate implements WorkloadHost {
  readonly owner: string;
  readonly election: string;
  readonly process: SimProcess;
  readonly plan: Plan;
  readonly monitor: Monitor;
  readonly resource: FencedResource;
  readonly random: Random;
  readonly clock: SimClock;
  readonly misbehaviour: Misbehaviour;
  state: WorkloadHost["state"] = "open";
  readonly #connection: Connection;
  readonly #met: SimCandidateOptions["met"];
  readonly #led: SimCandidateOptions["led"];
  /** As its election calls it; known from its first campaign on. */
  #candidate: string | undefined;
  readonly #workload: Workload;
  readonly #election: Subject;
  /** Time as the election sees it: what it leaves behind is counted. */
  readonly #clock: SimClock;
  readonly #stop = new AbortController();
  readonly #wills = new AbortController();
  #term: TermRecord | undefined;
  #asked: bigint | undefined; // the last term that the plan wanted handed over
  /** Regressions that the election has told of and the follower has not met yet. */
  #regressions = 0;
  /** What the follower saw last; `undefined`: nothing yet, or nobody follows. */
  sees: bigint | null | undefined;

  constructor(options: SimCandidateOptions) {
    const { process, serial, plan, monitor } = options;
    this.process = process;
    this.election = options.election;
    const label = options.election === ELECTION ? process.label : `${process.label}/${options.election}`;
    this.owner = serial === 1 ? label : `${label}.${serial}`;
    this.plan = plan;
    this.monitor = monitor;
    this.resource = options.resource;
    this.#met = options.met;
    this.#led = options.led;
    this.random = process.stream(`work/${options.election}/${serial}`);
    this.#clock = new SimClock(process, `election/${options.election}/${serial}`);
    this.clock = new SimClock(process, `app/${options.election}/${serial}`);
    this.misbehaviour = new Misbehaviour(process.node.scheduler, this.clock);
    this.#connection = options.connect(this.#clock, process, `${options.election}/${serial}`);
    const drainMs = plan.ttlMs;
    const ttlMs = Math.round(process.node.index % 2 === 0 ? plan.ttlMs * plan.ttlShare : plan.ttlMs);
    this.#workload = options.workload(this, {
      name: options.election,
      id: plan.sameId ? "node" : process.node.id,
      backend: spied(this.#connection.backend, {
        owner: this.owner,
        clock: this.#clock,
        monitor,
        drainMs,
        marginMs: marginOf(ttlMs, plan.stopShare),
        campaigns: (candidate) => (this.#candidate = candidate),
        standBackMs: plan.standBackMs,
        hands: (token, heir) => options.handing(this, token, heir, token === this.#asked),
      }),
      clock: this.#clock,
      ttlMs,
      renewDeadlineMs: plan.stopShare === undefined ? undefined : ttlMs * plan.stopShare,
      retryMs: plan.retryMs,
      drainMs,
      maxTermMs: plan.maxTermMs ?? undefined,
      ...(options.election === ELECTION && standingOf(plan, process.node)),
    });
    this.#election = this.#workload.election;
    watchCallRate(this.#connection.traffic, {
      ...{ plan, process, monitor, owner: this.owner, updatesPerTtl: this.#workload.updatesPerTtl },
    });
    this.#listen();
    this.#workload.begin();
    if (this.random.chance(0.25)) void this.#follow();
  }

  get open(): boolean {
    return this.state === "open";
  }

  get stop(): AbortSignal {
    return this.#stop.signal;
  }

  acceptRegression(): void {
    this.#election.acceptRegression?.();
  }

  resign(): void {
    this.#election
      .resign()
      .catch((error: unknown) => this.monitor.note(`${this.owner} resign failed: ${text(error)}`));
  }

  /** What its election is called in the store; `undefined` before its first campaign. */
  get name(): string | undefined {
    return this.#candidate;
  }

  transfer(to: string, timeoutMs: number): void {
    const { transfer } = this.#election;
    if (transfer === undefined) return this.resign();
    this.#asked = this.#term?.token;
    const note = (what: unknown): void =>
      this.monitor.note(`${this.owner} hands over to ${to}: ${text(what)}`);
    transfer.call(this.#election, to, { timeoutMs }).then(note, note);
  }

  proclaim(value: string): void {
    this.#term?.term
      .proclaim(value)
      .catch((error: unknown) => this.monitor.note(`${this.owner} proclaim failed: ${text(error)}`));
  }

  /** Publishes so many values, one after the other, that all that is kept of the past is overwritten. */
  burst(): void {
    const publish = async (): Promise<void> => {
      for (let i = 1; i <= BURST && this.process.alive; i++) await this.#term?.term.proclaim(`burst ${i}`);
    };
    publish().catch((error: unknown) => this.monitor.note(`${this.owner} burst failed: ${text(error)}`));
  }

  /** Gives a leadership back that is over. */
  release(claim: Claim): void {
    const { backend } = this.#connection;
    const note = (what: unknown): void =>
      this.monitor.note(`${this.owner} releases ${claim.token}: ${text(what)}`);
    const ask = async (signal: AbortSignal): Promise<unknown> => backend.release?.(claim, { signal });
    bounded(this.clock, this.plan.ttlMs, this.#wills.signal, "releasing", ask).then(note, note);
  }

  /** Bars a leadership from being renewed that may well go on. */
  evict(claim: Claim): void {
    const { backend } = this.#connection;
    const note = (what: unknown): void =>
      this.monitor.note(`${this.owner} evicts ${claim.token}: ${text(what)}`);
    const ask = async (signal: AbortSignal): Promise<unknown> => {
      const answer = await backend.evict?.(claim, { signal });
      return typeof answer === "object" ? "evicted" : answer;
    };
    bounded(this.clock, this.plan.ttlMs, this.#wills.signal, "evicting", ask).then(note, note);
  }

  /** A term began, heard of by its event or by its work. */
  opened(term: SubjectTerm): TermRecord {
    const record = this.monitor.opened(term, this.owner, this.process, this.#met(this.#candidate));
    this.#led(record, this.#candidate);
    if (this.#term !== record) {
      this.#term = record;
      onAbort(term.signal, () => (record.abortedAt ??= this.#clock.now()));
      if (this.plan.chatty && this.process.node.scheduler.now < this.plan.healAtMs) this.burst();
    }
    return record;
  }

  /** Closes the election; whatever it still does afterwards is a violation. */
  async close(): Promise<void> {
    if (this.state !== "open") return;
    this.state = "closing";
    this.#wills.abort();
    this.monitor.note(`${this.owner} closes`);
    if (this.random.chance(0.5)) this.#stop.abort();
    await this.#workload.close();
    if (!this.process.alive) return;
    this.state = "closed";
    this.monitor.note(`${this.owner} closed`);
    this.#stop.abort();
    const late = (what: string): void =>
      this.monitor.violate("after-close", `${this.owner} after close: ${what}`);
    await this.#connection.close(late);
    if (this.#clock.pending > 0) late(`${this.#clock.pending} timers are still set`);
    for (const { token } of this.monitor.unended(this.owner)) late(`the end of term ${token} was not told`);
    this.#clock.retired = late;
  }

  #listen(): void {
    const late = (what: string): void => {
      if (this.state === "closed") this.monitor.violate("after-close", `${this.owner} after close: ${what}`);
    };
    // A process that was killed in this very instant says nothing any more.
    this.#election.on("elected", ({ term }) => {
      if (!this.process.alive) return;
      late("elected");
      this.opened(term);
    });
    this.#election.on("ended", ({ term, end }) => {
      if (!this.process.alive) return;
      late("ended");
      this.monitor.ended(term, this.owner, end.reason);
    });
    this.#election.on("error", ({ error }) => {
      if (!isConclaveError(error) || error.code !== "token-regression") return;
      this.monitor.note(`${this.owner}: ${error.message}`);
      this.#regressions++;
      if (!this.monitor.forgetful && this.#connection.account?.excuse() !== true)
        this.monitor.violate("false-regression", `${this.owner}: ${error.message}`);
    });
  }

  #checkGranted(token: bigint): void {
    if (this.monitor.granted(token) === false && this.#connection.account?.stoodIn(token) !== true)
      this.monitor.violate("false-token", `${this.owner} saw ${token}, which was never granted`);
  }

  /** What was read before a pause may be told after it. */
  #sawNobody(): void {
    const { scheduler, turningSince } = this.process.node;
    const awake = scheduler.now - turningSince > this.plan.ttlMs;
    if (awake && this.monitor.vacancy() === false)
      this.monitor.violate("false-vacancy", `${this.owner} saw nobody lead`);
  }

  async #follow(): Promise<void> {
    let newest = -1n;
    let vacated = -1n;
    try {
      for await (const leader of this.#election.observe({ signal: this.#stop.signal })) {
        if (this.state === "closed")
          this.monitor.violate("after-close", `${this.owner} after close: observed a leader`);
        this.monitor.note(`${this.owner} sees ${leader === null ? "nobody" : leader.token}`);
        this.sees = leader?.token ?? null;
        if (leader !== null) this.#checkGranted(leader.token);
        if (leader === null) {
          vacated = newest;
          this.#sawNobody();
          continue;
        }
        if (leader.token < newest && this.#regressions > 0) {
          newest = -1n;
          vacated = -1n;
        }
        if (leader.token <= vacated)
          this.monitor.violate(
            "observer-order",
            `${this.owner} saw ${leader.token} again after nobody had led`,
          );
        if (leader.token < newest)
          this.monitor.violate("observer-order", `${this.owner} saw ${leader.token} after ${newest}`);
        newest = leader.token;
      }
    } catch (error) {
      if (this.state === "open")
        this.monitor.violate("unhandled", `${this.owner}: observe() threw: ${text(error)}`);
    }
  }
}

/** The library's default margin, which grows with what the store grants beyond what was asked. */
function marginOf(askedTtlMs: number, stopShare: number | undefined): (grantedTtlMs: number) => number {
  const marginMs = stopShare === undefined ? Math.max(250, askedTtlMs * 0.15) : askedTtlMs * (1 - stopShare);
  return (grantedTtlMs) => marginMs * Math.max(1, grantedTtlMs / askedTtlMs);
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
