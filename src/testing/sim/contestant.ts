/**
 * What runs on a node: one election, work that behaves well or badly, and a
 * follower of who leads. All of it dies with its process.
 */
import { onAbort, sleep } from "../../core/waiting.js";
import { SimClock } from "./clock.js";
import type { Monitor, TermRecord } from "./monitor.js";
import type { SimProcess } from "./node.js";
import type { Plan } from "./plan.js";
import type { Random } from "./random.js";
import type { FencedResource } from "./resource.js";
import { spied } from "./spy.js";
import { ELECTION } from "./stores.js";
import type { Connection } from "./stores.js";
import type { Subject, SubjectFactory, SubjectTerm } from "./subject.js";

export interface ContestantOptions {
  readonly process: SimProcess;
  readonly election: string;
  /** Tells one election of a process from the next. */
  readonly serial: number;
  readonly plan: Plan;
  readonly monitor: Monitor;
  readonly resource: FencedResource;
  readonly elect: SubjectFactory;
  readonly connect: (clock: SimClock, process: SimProcess, purpose: string) => Connection;
}

export class Contestant {
  readonly owner: string;
  readonly process: SimProcess;
  readonly #plan: Plan;
  readonly #monitor: Monitor;
  readonly #resource: FencedResource;
  readonly #random: Random;
  readonly #connection: Connection;
  readonly #election: Subject;
  /** Time as the election sees it, and as the work sees it: what is left behind is counted apart. */
  readonly #clock: SimClock;
  readonly #workClock: SimClock;
  readonly #stop = new AbortController();
  readonly #never = new AbortController().signal;
  #term: TermRecord | undefined;
  #runs = 0;
  #state: "open" | "closing" | "closed" = "open";
  /** What the work was told to do next. */
  #order: "throw" | "return" | undefined;
  #deafUntil = -Infinity;
  #wakeWork: () => void = () => {};

  constructor(options: ContestantOptions) {
    const { process, serial, plan, monitor, elect } = options;
    this.process = process;
    const label = options.election === ELECTION ? process.label : `${process.label}/${options.election}`;
    this.owner = serial === 1 ? label : `${label}.${serial}`;
    this.#plan = plan;
    this.#monitor = monitor;
    this.#resource = options.resource;
    this.#random = process.stream(`work/${options.election}/${serial}`);
    this.#clock = new SimClock(process, `election/${options.election}/${serial}`);
    this.#workClock = new SimClock(process, `app/${options.election}/${serial}`);
    this.#connection = options.connect(this.#clock, process, `${options.election}/${serial}`);
    const drainMs = plan.ttlMs;
    const ttlMs = Math.round(process.node.index % 2 === 0 ? plan.ttlMs * plan.ttlShare : plan.ttlMs);
    this.#election = elect({
      name: options.election,
      id: plan.sameId ? "node" : process.node.id,
      backend: spied(this.#connection.backend, {
        owner: this.owner,
        clock: this.#clock,
        monitor,
        drainMs,
        marginMs: marginOf(ttlMs),
      }),
      clock: this.#clock,
      ttlMs,
      retryMs: plan.retryMs,
      drainMs,
      maxTermMs: plan.maxTermMs ?? undefined,
    });
    this.#watchCalls();
    this.#listen();
    const style = this.#random.chance(0.8) ? this.#run() : this.#campaign();
    style.catch((error: unknown) =>
      monitor.violate("unhandled", `${this.owner}: run() rejected: ${String(error)}`),
    );
    if (this.#random.chance(0.25)) void this.#follow();
  }

  get open(): boolean {
    return this.#state === "open";
  }

  resign(): void {
    this.#election
      .resign()
      .catch((error: unknown) => this.#monitor.note(`${this.owner} resign failed: ${text(error)}`));
  }

  proclaim(value: string): void {
    this.#term?.term
      .proclaim(value)
      .catch((error: unknown) => this.#monitor.note(`${this.owner} proclaim failed: ${text(error)}`));
  }

  /** Publishes so many values, one after the other, that all that is kept of the past is overwritten. */
  burst(): void {
    const publish = async (): Promise<void> => {
      for (let i = 1; i <= BURST && this.process.alive; i++) await this.#term?.term.proclaim(`burst ${i}`);
    };
    publish().catch((error: unknown) => this.#monitor.note(`${this.owner} burst failed: ${text(error)}`));
  }

  /** The work throws or returns, as soon as it can. */
  order(order: "throw" | "return"): void {
    this.#order = order;
    this.#wakeWork();
  }

  /** The work does not hear its signal for a while. */
  deafen(untilTime: number): void {
    this.#deafUntil = untilTime;
  }

  /** Closes the election; whatever it still does afterwards is a violation. */
  async close(): Promise<void> {
    if (this.#state !== "open") return;
    this.#state = "closing";
    this.#monitor.note(`${this.owner} closes`);
    if (this.#random.chance(0.5)) this.#stop.abort();
    await this.#election.close();
    if (!this.process.alive) return;
    this.#state = "closed";
    this.#monitor.note(`${this.owner} closed`);
    this.#stop.abort();
    const late = (what: string): void =>
      this.#monitor.violate("after-close", `${this.owner} after close: ${what}`);
    await this.#connection.close(late);
    if (this.#clock.pending > 0) late(`${this.#clock.pending} timers are still set`);
    for (const { token } of this.#monitor.unended(this.owner)) late(`the end of term ${token} was not told`);
    this.#clock.retired = late;
  }

  #watchCalls(): void {
    const most = MOST_CALLS_PER_TTL[this.#plan.store];
    let window = -1;
    let calls = 0;
    this.#connection.traffic.onCall = (what) => {
      const current = Math.floor(this.process.node.scheduler.now / this.#plan.ttlMs);
      calls = current === window ? calls + 1 : 1;
      window = current;
      if (calls > most)
        this.#monitor.violate(
          "hot-loop",
          `${this.owner} asked the store ${calls} times within one ttl (${what})`,
        );
    };
  }

  #listen(): void {
    const late = (what: string): void => {
      if (this.#state === "closed")
        this.#monitor.violate("after-close", `${this.owner} after close: ${what}`);
    };
    // A process that was killed in this very instant says nothing any more.
    this.#election.on("elected", ({ term }) => {
      if (!this.process.alive) return;
      late("elected");
      this.#opened(term);
    });
    this.#election.on("ended", ({ term, end }) => {
      if (!this.process.alive) return;
      late("ended");
      this.#monitor.ended(term, this.owner, end.reason);
    });
  }

  #opened(term: SubjectTerm): TermRecord {
    const record = this.#monitor.opened(term, this.owner, this.process);
    if (this.#term !== record) {
      this.#term = record;
      onAbort(term.signal, () => (record.abortedAt ??= this.#clock.now()));
      if (this.#plan.chatty && this.process.node.scheduler.now < this.#plan.healAtMs) this.burst();
    }
    return record;
  }

  async #run(): Promise<void> {
    await this.#election.run((term) => this.#work(term), { signal: this.#stop.signal });
  }

  async #campaign(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        const term = await this.#election.campaign({ signal });
        // resign() and close() from outside are the owner's word that such work has stopped: its order is not ours to judge.
        await this.#work(term, "own").catch(() => {});
        await term.resign();
      } catch {
        if (this.#state !== "open") return;
        await sleep(this.#workClock, this.#plan.ttlMs * 0.2, signal);
      }
    }
  }

  async #work(term: SubjectTerm, kind: "running" | "own" = "running"): Promise<void> {
    const record = this.#opened(term);
    if (this.#runs > 0)
      this.#monitor.violate(
        "work-overlap",
        `${this.owner} began work for ${term.token} before its last work settled`,
      );
    if (this.#state === "closed")
      this.#monitor.violate("after-close", `${this.owner} after close: work for ${term.token} began`);
    this.#runs++;
    record.work = kind;
    this.#monitor.probe(true);
    try {
      await this.#labour(record);
    } finally {
      this.#runs--;
      record.work = "settled";
      this.#order = undefined;
    }
  }

  async #labour(record: TermRecord): Promise<void> {
    const { term } = record;
    const random = this.#random;
    while (!term.signal.aborted || this.#deaf) {
      await this.#rest(term.signal, this.#plan.ttlMs * random.between(0.2, 0.6));
      // Some work asks before it acts, some trusts the resource to refuse it.
      if (random.chance(0.3) || term.held) this.#resource.send(record);
      if (this.#order === "throw") throw new Error("the work failed");
      if (this.#order === "return") return;
    }
    if (random.chance(0.5))
      await sleep(this.#workClock, random.between(0, 0.4) * this.#plan.ttlMs, this.#never);
  }

  get #deaf(): boolean {
    return this.process.node.scheduler.now < this.#deafUntil;
  }

  /** Sleeps until the work has something to do: time, an order, or its signal, if it can hear it. */
  async #rest(signal: AbortSignal, ms: number): Promise<void> {
    const woken = new AbortController();
    this.#wakeWork = () => woken.abort();
    const unlink = onAbort(signal, () => void (this.#deaf || woken.abort()));
    await sleep(this.#workClock, ms, woken.signal);
    unlink();
  }

  /** What was read before a pause may be told after it. */
  #sawNobody(): void {
    const { scheduler, turningSince } = this.process.node;
    const awake = scheduler.now - turningSince > this.#plan.ttlMs;
    if (awake && this.#monitor.vacancy() === false)
      this.#monitor.violate("false-vacancy", `${this.owner} saw nobody lead`);
  }

  async #follow(): Promise<void> {
    let newest = -1n;
    try {
      for await (const leader of this.#election.observe({ signal: this.#stop.signal })) {
        if (this.#state === "closed")
          this.#monitor.violate("after-close", `${this.owner} after close: observed a leader`);
        this.#monitor.note(`${this.owner} sees ${leader === null ? "nobody" : leader.token}`);
        if (leader === null) {
          this.#sawNobody();
          continue;
        }
        if (leader.token < newest)
          this.#monitor.violate("observer-order", `${this.owner} saw ${leader.token} after ${newest}`);
        newest = leader.token;
      }
    } catch (error) {
      if (this.#state === "open")
        this.#monitor.violate("unhandled", `${this.owner}: observe() threw: ${text(error)}`);
    }
  }
}

/** The library's default margin, which grows with what the store grants beyond what was asked. */
function marginOf(askedTtlMs: number): (grantedTtlMs: number) => number {
  return (grantedTtlMs) => Math.max(250, askedTtlMs * 0.15) * Math.max(1, grantedTtlMs / askedTtlMs);
}

/** Far above what a healthy node needs, far below what a loop without a pause does. */
const MOST_CALLS_PER_TTL: Record<Plan["store"], number> = {
  observer: 100,
  timed: 100,
  queue: 250,
  file: 500,
};

/** More than the file room keeps. */
const BURST = 20;

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
