/**
 * Watches how leadership is passed on: that an heir who waits is next when all
 * is well, and that a roster orders candidates without changing leaders more
 * often than it may. Lets faults strike in the middle of a handover.
 */
import { isHeir } from "../../kit/heir.js";
import { IN_HANDOVER, CALM } from "./succession-plan.js";
import type { InHandover } from "./succession-plan.js";
import { Random } from "./random.js";
import type { Replica } from "./replica.js";
import type { SimCandidate } from "./sim-candidate.js";
import type { TermRecord } from "./term-record.js";
import type { World } from "./world.js";

/** A handover takes some ten messages: faults strike at any of them. */
const HANDOVER_MESSAGES = 14;
/** Between a term's beginning and its telling. */
const SLACK_MS = 50;
/** In ttls: how long a dead candidate's line may be believed, if it is seen late and counted by a slow clock. */
const LINGERS = 3;
/** Messages of a dead candidate may be as late as this. */
const LATEST_MS = 6_000;
const MOST_POLLS = 3;

export class Succession {
  readonly #world: World;
  readonly #random: Random;
  /** When each term began, by its node's monotonic clock. */
  readonly #begun = new Map<bigint, number>();
  /** Terms whose end in favour of somebody has been seen. */
  readonly #handed = new Set<bigint>();
  /** When each candidate was killed or closed. */
  readonly #gone = new Map<string, number>();
  /** Who must be elected next. */
  #expected: string | undefined;

  constructor(world: World) {
    this.#world = world;
    this.#random = new Random(world.plan.seed, "handing");
  }

  /** Once all is well. */
  begin(): void {
    const { scheduler, plan } = this.#world;
    const { healAtMs, ttlMs, handovers = 0 } = plan;
    for (let i = 0; i < handovers; i++)
      scheduler.at(healAtMs + (CALM.first + i * CALM.apart) * ttlMs, () => this.#handOver());
    if (plan.roster !== undefined) scheduler.quietly(plan.horizonMs, () => this.#checkOrder());
  }

  /** A candidate's process was killed, or it was closed. */
  left(candidate: SimCandidate | undefined): void {
    const { scheduler } = this.#world;
    if (candidate?.name !== undefined && !this.#gone.has(candidate.name))
      this.#gone.set(candidate.name, scheduler.now);
  }

  /** A term began. */
  led({ token, node, owner }: TermRecord, candidate: string | undefined): void {
    if (this.#begun.has(token)) return;
    const { scheduler, plan, monitor } = this.#world;
    this.#begun.set(token, node.oscillator.mono(scheduler.now));
    if (plan.roster?.observers.includes(node.id) === true)
      monitor.violate("priority", `${owner} leads, which is not eligible`);
    const expected = this.#expected;
    this.#expected = undefined;
    if (expected !== undefined && candidate !== expected)
      monitor.violate("heir-ignored", `${owner} leads, although leadership was handed to ${expected}`);
  }

  /** Leadership is being given to somebody: `asked`, because a user named the heir; else for its priority. */
  handing(from: SimCandidate, token: bigint, heir: string, asked: boolean): void {
    if (this.#handed.has(token)) return;
    this.#handed.add(token);
    const { scheduler, plan, monitor } = this.#world;
    monitor.note(`${from.owner} hands ${token} to ${heir}`);
    if (plan.roster !== undefined && !asked) this.#checkPreemption(from, token, heir);
    if (plan.handovers !== undefined && scheduler.now >= plan.healAtMs && !monitor.forgetful)
      this.#expected = heir;
    for (const moment of IN_HANDOVER) this.#strike(moment, from, heir);
  }

  #strike(moment: InHandover, from: SimCandidate, heir: string): void {
    const { scheduler, plan, replicas } = this.#world;
    const strike = this.#world.ambushes.take(moment);
    if (strike === undefined) return;
    const whose = (replica: Replica): InHandover => {
      if (replica.node === from.process.node) return "handing";
      return isHeir(replica.candidate?.name ?? "", heir) ? "heir" : "waiting";
    };
    const [first, ...others] = replicas.filter((replica) => whose(replica) === moment);
    const delayMs = this.#random.between(0, HANDOVER_MESSAGES * plan.latency.medianMs);
    if (first === undefined) return;
    const replica = this.#random.pick([first, ...others]);
    scheduler.at(scheduler.now + delayMs, () => strike(replica));
  }

  /** The leader names one of those that wait. */
  #handOver(): void {
    const { monitor, plan, replicas, scheduler } = this.#world;
    const leader = monitor.leader()?.node;
    const from = replicas.find(({ node }) => node === leader);
    const [first, ...others] = replicas.flatMap(({ node, candidate }) => {
      const waits = candidate?.open === true && node.turningSince < scheduler.now - 2 * plan.ttlMs;
      return node !== leader && waits && candidate.name !== undefined ? [candidate.name] : [];
    });
    // Where nothing is pushed an heir may look only after 2.2 times `retryMs` (Kubernetes).
    const forMs = Math.max(plan.ttlMs, MOST_POLLS * plan.retryMs);
    if (first !== undefined) from?.candidate?.transfer(this.#random.pick([first, ...others]), forMs);
  }

  #checkPreemption(from: SimCandidate, token: bigint, heir: string): void {
    const { scheduler, monitor, plan, replicas } = this.#world;
    const { node } = from.process;
    const begun = this.#begun.get(token);
    const until = monitor.recordOf(token, from.owner)?.abortedAt ?? node.oscillator.mono(scheduler.now);
    const { minTermMs } = plan.roster!;
    if (begun !== undefined && until - begun < minTermMs - SLACK_MS)
      monitor.violate("flapping", `${from.owner} handed over after ${until - begun} ms of ${minTermMs}`);
    const gone = this.#gone.get(heir) ?? Infinity;
    if (scheduler.now - gone > LINGERS * plan.ttlMs + LATEST_MS)
      monitor.violate("wrong-heir", `${from.owner} handed over to ${heir}, which has long been gone`);
    const other = replicas.find(({ candidate }) => candidate?.name === heir);
    if (other !== undefined && this.#priority(other) <= this.#priority({ node }))
      monitor.violate("wrong-heir", `${from.owner} handed over to ${heir}, whose priority is not higher`);
  }

  /** All has been well for long enough: whoever leads is preferred to all that wait. */
  #checkOrder(): void {
    const { monitor, replicas, plan } = this.#world;
    const leader = monitor.leader();
    if (leader === undefined || monitor.forgetful) return;
    for (const replica of replicas) {
      const { candidate, node } = replica;
      if (candidate?.open !== true || plan.roster?.observers.includes(node.id) === true) continue;
      if (this.#priority(replica) > this.#priority(leader))
        monitor.violate("priority", `${leader.owner} leads, although ${candidate.owner} is preferred`);
    }
  }

  #priority({ node }: Pick<Replica, "node">): number {
    return this.#world.plan.roster?.priorities[node.index - 1] ?? 0;
  }
}
