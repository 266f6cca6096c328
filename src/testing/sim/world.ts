/** One plan, run from beginning to end. */
import { Election } from "../../election/election.js";
import type { Timetable } from "../../cron/timetable.js";
import { SimCandidate } from "./sim-candidate.js";
import { CronMonitor } from "./cron-monitor.js";
import { almanacOf } from "./cron-plan.js";
import { CronWork } from "./cron-work.js";
import { customStore } from "./custom-store.js";
import { Ambushes } from "./ambushes.js";
import type { Moment } from "./ambushes.js";
import { applyFault } from "./faults.js";
import type { WorkloadFactory } from "./workload.js";
import { Monitor } from "./monitor.js";
import { Wills } from "./wills.js";
import { ElectionWork } from "./election-work.js";
import { StoreHost } from "./network.js";
import type { SimNode, SimProcess } from "./node.js";
import { CROWD } from "./plan.js";
import type { Plan } from "./plan.js";
import { expectQuietEnd } from "./quiet-end.js";
import { Random } from "./random.js";
import { replicaOf, wallStartOf } from "./replica.js";
import type { Replica } from "./replica.js";
import { FencedResource } from "./resource.js";
import type { Violation } from "./rules.js";
import { Scheduler } from "./scheduler.js";
import type { SimResult, SimulateOptions } from "./simulation.js";
import { openStore } from "./stores.js";
import { Succession } from "./succession.js";
import { ELECTION } from "./store-parts.js";
import type { Store, StoreOptions } from "./store-parts.js";
import { Trace } from "./trace.js";

/** Some thirty times as many as an ordinary schedule has. */
const MOST_EVENTS = 100_000;

/** An election besides the one that the plan is about: its own watch and its own resource. */
interface Side {
  readonly election: string;
  readonly monitor: Monitor;
  readonly resource: FencedResource;
}

export class World {
  readonly scheduler: Scheduler;
  readonly monitor: Monitor;
  readonly trace: Trace;
  readonly host: StoreHost;
  readonly store: Store;
  readonly election = ELECTION;
  /** The other elections that processes stand in besides, if they do. */
  readonly sides: readonly Side[];
  readonly replicas: readonly Replica[];
  readonly resource: FencedResource;
  /** What watches the schedule, if one is run. */
  readonly cron: CronMonitor | undefined;
  readonly #options: SimulateOptions;
  readonly #workload: WorkloadFactory;
  readonly #monitors: readonly Monitor[];
  /** Elections that only a few stand in, and that need not have a leader. */
  readonly #naps: Side[] = [];
  readonly wills = new Wills();
  readonly #succession: Succession;
  readonly ambushes = new Ambushes();

  constructor(
    readonly plan: Plan,
    options: SimulateOptions,
    timetable: Timetable | undefined,
  ) {
    this.#options = options;
    this.trace = new Trace(options.trace ?? false);
    this.scheduler = new Scheduler(plan.seed);
    this.monitor = new Monitor(this.scheduler, this.trace, plan.probe === "seldom" ? plan.ttlMs / 3 : 0);
    this.host = new StoreHost(this.scheduler);
    const wrote = (record: string): void => this.cron?.wrote(record);
    const gone: StoreOptions["gone"] = (token, concerns = () => true) => {
      for (const { monitor, election } of [this, ...this.sides, ...this.#naps])
        if (concerns(election)) monitor.gone(token);
    };
    const store = { plan, host: this.host, monitor: this.monitor, wrote, gone };
    this.store = options.store === undefined ? openStore(store) : customStore(store, options.store);
    this.monitor.forgot = (token) => this.store.memory?.forgot(token, ELECTION) ?? false;
    this.monitor.granted = (token) => this.store.granted?.(token);
    this.monitor.vouches = () => this.store.vouches?.() ?? false;
    this.monitor.ignored = new Set(options.ignore);
    this.monitor.onOpened = (node) => this.#sprung("next", node);
    this.monitor.onCampaigning = (node) => this.#sprung("campaigning", node);
    this.monitor.vacancy = () => this.store.vacancy?.();
    this.monitor.holds = (token) => this.store.holds(token, ELECTION);
    this.resource = new FencedResource(this.scheduler, this.monitor, new Random(plan.seed, "resource"));
    this.sides = Array.from({ length: plan.sides }, (_, i) => this.#side(`side${i || ""}`));
    this.#monitors = [this.monitor, ...this.sides.map(({ monitor }) => monitor)];
    const elect = options.elect ?? ((subject) => new Election(subject));
    const electionWork: WorkloadFactory = (host, subject) => new ElectionWork(host, elect(subject));
    this.#workload = electionWork;
    if (plan.cron && timetable !== undefined) {
      const monitor = new CronMonitor(plan.cron, almanacOf(plan.cron) ?? timetable, this.monitor);
      monitor.onClaim = (node) => this.#sprung("claim", node);
      monitor.onRun = (node) => this.#sprung("run", node);
      this.cron = monitor;
      const cron = { plan: plan.cron, timetable, monitor };
      this.#workload = (host, subject) =>
        subject.name === ELECTION ? new CronWork(host, cron, subject) : electionWork(host, subject);
    }
    this.#succession = new Succession(this);
    this.replicas = Array.from({ length: plan.nodes }, (_, i) =>
      replicaOf(plan, i + 1, this.scheduler, this.cron !== undefined),
    );
  }

  async run(): Promise<SimResult> {
    const { plan, scheduler, monitor } = this;
    const unlisten = this.#options.rejections?.((error) => {
      monitor.violate("unhandled", error instanceof Error ? (error.stack ?? error.message) : String(error));
    });
    try {
      this.#schedule();
      await scheduler.run(plan.horizonMs, () => this.#settled());
      await this.#closeAll();
    } finally {
      unlisten?.();
      for (const replica of this.replicas) replica.node.kill();
    }
    this.trace.number(scheduler.count);
    return {
      plan,
      violation: this.#violation,
      terms: monitor.terms,
      faults: plan.faults.length,
      virtualMs: plan.horizonMs,
      events: scheduler.count,
      hash: this.trace.hash,
      accepted: this.resource.accepted,
      refused: this.resource.refused,
      cron: this.cron?.counts,
      trace: this.trace.lines,
    };
  }

  start(replica: Replica): void {
    if (replica.node.process !== undefined) return;
    const { label } = replica.node.start();
    replica.serial = 0;
    this.monitor.note(`${label} starts`);
    this.open(replica);
  }

  open(replica: Replica): void {
    const { process } = replica.node;
    if (process === undefined) return;
    this.#succession.left(replica.candidate);
    replica.candidate = this.#candidateOn(replica, process, ELECTION, ++replica.serial);
    if (replica.sides.length > 0 || (this.plan.sides > CROWD && replica.node.index > 2)) return;
    replica.sides = this.sides.map((side) => this.#candidateOn(replica, process, side.election, 1, side));
  }

  #side(election: string): Side {
    const monitor = new Monitor(this.scheduler, this.trace, 0);
    monitor.ignored = new Set(this.#options.ignore);
    monitor.forgot = (token) => this.store.memory?.forgot(token, election) ?? false;
    monitor.forgetful = this.monitor.forgetful;
    const random = new Random(this.plan.seed, election);
    return { election, monitor, resource: new FencedResource(this.scheduler, monitor, random) };
  }

  #candidateOn(
    replica: Replica,
    process: SimProcess,
    election: string,
    serial: number,
    { monitor, resource }: Pick<Side, "monitor" | "resource"> = this,
  ): SimCandidate {
    this.store.memory?.forgive(process, election);
    return new SimCandidate({
      process,
      election,
      led: (term, candidate) => {
        if (election !== ELECTION) return;
        this.wills.led(term, candidate);
        this.#succession.led(term, candidate);
      },
      handing: (...handed) => election === ELECTION && this.#succession.handing(...handed),
      met: (candidate) => this.store.memory?.met(process, election, candidate) ?? -1n,
      serial,
      plan: this.plan,
      monitor,
      resource,
      workload: this.#workload,
      connect: (clock, owner, purpose) => this.store.connect(clock, owner, replica.trouble, purpose),
    });
  }

  /** One more election, which nobody stands in yet. */
  addSide(): Side {
    const side = this.#side(`nap${this.#naps.length + 1}`);
    this.#naps.push(side);
    return side;
  }

  /** This node's process, if there is one, campaigns in one more election. */
  enter(replica: Replica, side: Side): void {
    const { process } = replica.node;
    process?.deliver(() => replica.sides.push(this.#candidateOn(replica, process, side.election, 1, side)));
  }

  /** Every election's. */
  get monitors(): readonly Monitor[] {
    return [...this.#monitors, ...this.#naps.map(({ monitor }) => monitor)];
  }

  losePower(): void {
    this.store.losePower();
    if (this.plan.store === "file") this.cron?.losePower();
  }

  #sprung(moment: Moment, node: SimNode): void {
    const strike = this.ambushes.take(moment);
    const replica = this.replicas.find((each) => each.node === node);
    if (strike !== undefined && replica !== undefined)
      this.scheduler.at(this.scheduler.now, () => strike(replica));
  }

  crash(replica: Replica): void {
    const { process } = replica.node;
    if (process === undefined) return;
    this.monitor.note(`${process.label} is killed`);
    this.monitor.forget(process);
    for (const monitor of this.monitors) monitor.forget(process);
    this.#succession.left(replica.candidate);
    replica.node.kill();
    replica.candidate = undefined;
    replica.sides = [];
  }

  #schedule(): void {
    const { plan, scheduler, monitor } = this;
    const random = new Random(plan.seed, "start");
    for (const replica of this.replicas) scheduler.at(random.next() * 500, () => this.start(replica));
    plan.faults.forEach((fault, index) => scheduler.at(fault.t, () => applyFault(this, fault, index)));
    scheduler.at(plan.healAtMs, () => {
      monitor.note("all is well from here on");
      for (const replica of this.replicas) this.start(replica);
    });
    if (this.cron !== undefined) scheduler.at(plan.healAtMs + plan.ttlMs, () => this.#setDates());
    this.#succession.begin();
    expectQuietEnd(this, this.#monitors);
  }

  /**
   * Scheduled times are due again when they should be. Not when the machines wake: a
   * date that is set back by as much as a sleep was long hides that sleep.
   */
  #setDates(): void {
    const { now } = this.scheduler;
    for (const { node } of this.replicas) node.oscillator.setWall(now, wallStartOf(this.plan) + now);
  }

  get #violation(): Violation | undefined {
    return this.monitors.find(({ violation }) => violation !== undefined)?.violation;
  }

  #settled(): boolean {
    this.trace.number(this.scheduler.now);
    const most = MOST_EVENTS * (1 + this.plan.sides / 4);
    if (this.scheduler.count > most)
      this.monitor.violate("hot-loop", `more than ${most} events: something spins`);
    let found = false;
    for (const monitor of this.monitors) if (monitor.probe(false)) found = true; // each is asked
    return found;
  }

  /** In the end everyone closes, and nothing may be left. */
  async #closeAll(): Promise<void> {
    const { plan, scheduler, monitor } = this;
    if (this.#violation !== undefined) return;
    let open = 0;
    scheduler.at(plan.horizonMs, () => {
      for (const candidate of this.replicas.flatMap((replica) => [replica.candidate, ...replica.sides])) {
        if (candidate === undefined || !candidate.open) continue;
        open++;
        candidate.close().then(
          () => void open--,
          (error: unknown) => monitor.violate("after-close", `close() rejected: ${String(error)}`),
        );
      }
    });
    await scheduler.run(plan.horizonMs + 4 * plan.ttlMs, () => this.#settled());
    if (open > 0 && this.#violation === undefined)
      monitor.violate("after-close", `close() of ${open} elections did not resolve within 4 x ttl`);
  }
}
