/** The system calls of one simulated process. */
import type { StoreHost, Trouble } from "./network.js";
import type { SimProcess } from "./node.js";
import type { Plan } from "./plan.js";
import type { Random } from "./random.js";

const TAIL = 0.25;
const TAIL_MAX_MS = 6_000;
const ERRORS = 0.3;

/** The system calls of one process. They cannot be called back, and nothing is lost; but they can be slow, and fail. */
export class DiskCalls {
  pending = 0;
  onCall: ((what: string) => void) | undefined;
  readonly #random: Random;

  constructor(
    readonly process: SimProcess,
    readonly host: StoreHost,
    readonly trouble: Trouble,
    readonly plan: Plan,
    purpose: string,
  ) {
    this.#random = process.stream(`disk/${purpose}`);
  }

  /** `before`: steps that take effect one after the other before `serve` does. */
  make<T>(what: string, serve: () => T, before: readonly (() => void)[] = []): Promise<T> {
    return new Promise((resolve, reject) => {
      this.pending++;
      this.onCall?.(what);
      const fails = this.#now < this.trouble.errors && this.#random.chance(ERRORS);
      const afterwards = this.#random.chance(0.5);
      const steps = [...before];
      const answer = (settle: () => void): void =>
        void this.host.scheduler.at(this.#now + this.#random.next(), () =>
          this.process.deliver(() => {
            this.pending--;
            settle();
          }),
        );
      const fail = (error: unknown): void =>
        answer(() => reject(error instanceof Error ? error : new Error(String(error))));
      const step = (): void => {
        try {
          if (fails && !afterwards) throw errno("EIO", what);
          const next = steps.shift();
          if (next !== undefined) {
            next();
            this.#later(step);
            return;
          }
          const value = serve();
          if (fails) throw errno("EIO", what);
          answer(() => resolve(value));
        } catch (error) {
          fail(error);
        }
      };
      this.#later(step);
    });
  }

  notify(run: () => void): void {
    const lost = this.#random.chance(0.02) && this.#now < this.plan.healAtMs;
    const late = this.#random.next() * 5;
    if (lost || this.#now < this.trouble.mute) return;
    this.host.scheduler.at(this.#now + late, () => this.process.deliver(run));
  }

  /** In how many steps a directory is read. */
  steps(): number {
    return this.#random.whole(1, 3);
  }

  get #now(): number {
    return this.host.scheduler.now;
  }

  /** When the call's thread gets on: after the disk, and only while the process runs. */
  #later(run: () => void): void {
    const { scheduler } = this.host;
    const base = this.#random.logNormal(0.15, 0.8);
    const tail = this.#random.next();
    const extra = this.#random.next();
    const longest = this.#random.next() < 0.5 ? this.plan.ttlMs / 2 : TAIL_MAX_MS;
    const slow =
      this.#now < this.trouble.delay || this.#now < this.trouble.loss ? TAIL : this.plan.latency.tail / 8;
    const healthy = this.#now >= this.plan.healAtMs;
    const drag = this.#now < this.host.slowUntil ? (extra * this.plan.ttlMs) / 10 : 0;
    const lags = this.plan.laggard === this.process.node.index && !healthy && tail > 0.8;
    const stuck = Math.max(this.trouble.requestsCut, this.trouble.answersCut, this.#now);
    const wait =
      !healthy && tail < slow
        ? extra * Math.min(longest, this.plan.healAtMs - this.#now)
        : lags
          ? extra * 0.2 * this.plan.ttlMs
          : 0;
    scheduler.quietly(this.host.startOf(stuck + base + drag + wait), () => this.process.whenRunning(run));
  }
}

export function errno(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}
