/**
 * Makes a failing plan small. A step is kept only if the *same* invariant still
 * breaks: a plan that fails differently is another story.
 */
import type { CronPlan } from "./cron-plan.js";
import type { Rule } from "./rules.js";
import type { Fault, Plan } from "./plan.js";
import type { SimResult } from "./simulation.js";

export interface Shrunk {
  readonly outcome: SimResult;
  /** Plans that were tried. */
  readonly tries: number;
}

export interface ShrinkOptions {
  readonly run: (plan: Plan) => Promise<SimResult>;
  /** Most plans to try. Default 600. */
  readonly tries?: number;
}

export async function shrink(failed: SimResult, options: ShrinkOptions): Promise<Shrunk> {
  const shrinker = new Shrinker(failed, options);
  await shrinker.run();
  return { outcome: shrinker.best, tries: shrinker.tries };
}

class Shrinker {
  best: SimResult;
  tries = 0;
  readonly #rule: Rule | undefined;
  readonly #options: ShrinkOptions;
  readonly #most: number;

  constructor(failed: SimResult, options: ShrinkOptions) {
    this.best = failed;
    this.#rule = failed.violation?.rule;
    this.#options = options;
    this.#most = options.tries ?? 600;
  }

  async run(): Promise<void> {
    if (this.#rule === undefined) return;
    await this.#try(cutShort(this.best));
    await this.#fewerFaults();
    for (let changed = true; changed && this.tries < this.#most;) {
      changed = false;
      for (const simpler of simplifications(this.best.plan)) {
        // Each was made from one plan: once that was replaced, what is left is made anew.
        if (await this.#try(simpler)) {
          changed = true;
          break;
        }
      }
    }
    await this.#fewerFaults();
    await this.#try(cutShort(this.best));
  }

  /** ddmin: leaves out halves, then quarters, down to single faults. */
  async #fewerFaults(): Promise<void> {
    for (let size = Math.ceil(this.best.plan.faults.length / 2); size >= 1;) {
      let removed = false;
      for (let at = 0; at < this.best.plan.faults.length;) {
        const { faults } = this.best.plan;
        const fewer = [...faults.slice(0, at), ...faults.slice(at + size)];
        if (await this.#try({ ...this.best.plan, faults: fewer })) removed = true;
        else at += size;
      }
      if (!removed || size > 1) size = size === 1 ? 0 : Math.ceil(size / 2);
    }
  }

  async #try(plan: Plan): Promise<boolean> {
    if (this.tries >= this.#most) return false;
    this.tries++;
    const outcome = await this.#options.run(plan);
    if (outcome.violation?.rule !== this.#rule) return false;
    this.best = outcome;
    return true;
  }
}

/** Nothing after the violation matters, unless it is that nothing came. */
function cutShort({ plan, violation }: SimResult): Plan {
  if (violation === undefined || violation.rule === "liveness" || violation.t >= plan.horizonMs) return plan;
  const horizonMs = Math.ceil(violation.t) + 1;
  return {
    ...plan,
    horizonMs,
    healAtMs: Math.min(plan.healAtMs, horizonMs),
    faults: plan.faults.filter((fault) => fault.t <= horizonMs),
  };
}

function* simplifications(plan: Plan): Generator<Plan> {
  const { latency, loss, rates, faults } = plan;
  if (plan.nodes > (plan.store === "peers" ? 3 : 2)) yield { ...plan, nodes: plan.nodes - 1 };
  if (plan.maxTermMs !== null) yield { ...plan, maxTermMs: null };
  if (plan.laggard > 0) yield { ...plan, laggard: 0 };
  if (plan.chatty) yield { ...plan, chatty: false };
  if (plan.cron) yield* simplerSchedules(plan, plan.cron);
  if (plan.oneKey) yield { ...plan, oneKey: false };
  if (plan.sides > 0) yield { ...plan, sides: plan.sides - 1 };
  if (plan.sameId) yield { ...plan, sameId: false };
  if (plan.ttlShare !== 1) yield { ...plan, ttlShare: 1 };
  if (plan.foreign) yield { ...plan, foreign: false };
  if (plan.watch) yield { ...plan, watch: false };
  if (plan.duplicate > 0) yield { ...plan, duplicate: 0 };
  if (loss.request > 0) yield { ...plan, loss: { ...loss, request: 0 } };
  if (loss.answer > 0) yield { ...plan, loss: { ...loss, answer: 0 } };
  if (latency.tail > 0) yield { ...plan, latency: { ...latency, tail: 0 } };
  if (latency.sigma > 0) yield { ...plan, latency: { ...latency, sigma: 0 } };
  if (rates.low !== rates.high) yield { ...plan, rates: { low: 1, high: 1 } };
  for (let i = 0; i < faults.length; i++) {
    for (const simpler of simplerFaults(faults[i]!)) {
      yield { ...plan, faults: faults.map((fault, j) => (i === j ? simpler : fault)) };
    }
  }
}

function* simplerSchedules(plan: Plan, cron: CronPlan): Generator<Plan> {
  yield { ...plan, cron: null };
  if (typeof cron.cron === "string") yield { ...plan, cron: { ...cron, cron: 2_000 } };
  if (cron.timeoutMs !== null) yield { ...plan, cron: { ...cron, timeoutMs: null } };
  if (cron.misfire !== "all") yield { ...plan, cron: { ...cron, misfire: "all" } };
  if (cron.overlap !== "parallel") yield { ...plan, cron: { ...cron, overlap: "parallel" } };
  if (cron.keep < 50) yield { ...plan, cron: { ...cron, keep: 50 } };
}

function* simplerFaults(fault: Fault): Generator<Fault> {
  if (fault.dur >= 200) yield { ...fault, dur: Math.round(fault.dur / 2 / 100) * 100 };
  if (fault.t % 1000 !== 0) yield { ...fault, t: Math.round(fault.t / 1000) * 1000 };
}
