/**
 * What lies between a process and its store. A request and its answer travel
 * separately, and each may be lost, late or cut off: a caller that hears
 * nothing does not know whether the store acted.
 */
import { ConclaveError } from "../../kit/errors.js";
import type { Stop } from "../../kit/stop.js";
import { onAbort } from "../../kit/wait.js";
import type { SimProcess } from "./node.js";
import type { Plan } from "./plan.js";
import { Random } from "./random.js";
import type { Scheduler } from "./scheduler.js";

/** Troubles of one node's link (or of the store itself), each until some true time. */
export interface Trouble {
  requestsCut: number;
  answersCut: number;
  loss: number;
  delay: number;
  duplicate: number;
  mute: number;
  stale: number;
  /** Since when a replica hears nothing any more; infinite: it lags, now more, now less. */
  staleSince: number;
  errors: number;
}

export function noTrouble(): Trouble {
  return {
    requestsCut: 0,
    answersCut: 0,
    loss: 0,
    delay: 0,
    duplicate: 0,
    mute: 0,
    stale: 0,
    staleSince: Infinity,
    errors: 0,
  };
}

/** The machine the store runs on. */
export class StoreHost {
  frozenUntil = 0;
  slowUntil = 0;

  constructor(readonly scheduler: Scheduler) {}

  /** When a request that arrives at `time` is worked on. */
  startOf(time: number): number {
    return Math.max(time, this.frozenUntil);
  }
}

const LOSS = 0.4;
const TAIL = 0.3;
/** Of the ttl: with clocks at both ends of what is permitted, a small part of it is too much. */
const LAG = 0.2;
const DUPLICATE = 0.3;
const ERRORS = 0.5;

/** One process's way to one store. */
export class Link {
  /** Calls that were made and are not settled. */
  pending = 0;
  calls = 0;
  /** Called at every request, for whoever counts. */
  onCall: ((what: string) => void) | undefined;
  readonly #random: Random;

  constructor(
    readonly process: SimProcess,
    readonly host: StoreHost,
    readonly trouble: Trouble,
    readonly plan: Plan,
    purpose: string,
    /** Whether a request can arrive twice: over one connection it cannot. */
    readonly twice = true,
  ) {
    this.#random = process.stream(`link/${purpose}`);
  }

  get #now(): number {
    return this.host.scheduler.now;
  }

  /** Whether a read made now may be answered by a lagging replica, and how old that answer is. */
  staleness(): number {
    const draw = this.#random.next();
    const age = this.#random.next();
    if (this.#now >= this.trouble.stale) return 0;
    if (this.trouble.staleSince < this.#now) return this.#now - this.trouble.staleSince;
    return draw < 0.6 ? age * 2 * this.plan.ttlMs : 0;
  }

  /** Whether a message that was lost took its stream with it: all but those swallowed by a mute. */
  breaks(): boolean {
    return this.#now >= this.trouble.mute;
  }

  coin(): boolean {
    return this.#random.next() < 0.5;
  }

  /** Sends a request; `serve` runs at the store, at once and alone, if and when the request arrives. */
  call<T>(what: string, serve: () => T, signal: Stop): Promise<T> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(reasonOf(signal));
      this.calls++;
      this.pending++;
      this.onCall?.(what);
      let open = true;
      const settle = (end: () => void): void => {
        if (!open) return;
        open = false;
        this.pending--;
        unlink();
        end();
      };
      let unlink = (): void => {};
      unlink = onAbort(signal, () => settle(() => reject(reasonOf(signal))));
      const fate = this.#draw();
      const fail = (message: string, afterMs: number): void =>
        this.#answer(afterMs, () => settle(() => reject(new ConclaveError("unavailable", message))));
      if (fate.requestLost) {
        // Half of the lost ones are noticed: the connection breaks.
        if (fate.noticed) fail(`${what}: connection reset`, fate.answerMs);
        return;
      }
      const arrive = (): void => {
        const result = attempt(serve, this.#now < this.trouble.errors ? fate.error : "none", what);
        if (fate.answerLost || this.#now < this.trouble.answersCut) {
          if (fate.noticed) fail(`${what}: connection reset`, fate.answerMs);
          return;
        }
        this.#answer(fate.answerMs, () =>
          settle(() => (result.ok ? resolve(result.value) : reject(result.error))),
        );
      };
      this.#arriveAfter(fate.requestMs, arrive);
      if (fate.duplicateMs > 0 && this.twice)
        this.#arriveAfter(fate.duplicateMs, () => void attempt(serve, "none", what));
    });
  }

  /** One message from the store to the process, without an answer. `false`: it will not arrive. */
  notify(run: () => void): boolean {
    const fate = this.#draw();
    if (this.#now < this.trouble.mute || this.#now < this.trouble.answersCut || fate.answerLost) return false;
    this.#answer(fate.answerMs, run);
    return true;
  }

  /** Every call draws the same number of times, whatever befalls it. */
  #draw(): Fate {
    const random = this.#random;
    const { latency, loss, duplicate, healAtMs } = this.plan;
    const now = this.#now;
    const healthy = now >= healAtMs;
    const lossy = now < this.trouble.loss ? LOSS : 0;
    const requestRoll = random.next();
    const answerRoll = random.next();
    const noticedRoll = random.next();
    const errorRoll = random.next();
    const againRoll = random.next();
    const lateRoll = random.next();
    const requestMs = this.#delay();
    const answerMs = this.#delay();
    const againMs = requestMs + random.next() * latency.tailMaxMs;
    const twice = healthy ? 0 : now < this.trouble.duplicate ? DUPLICATE : duplicate;
    const late = this.host.slowUntil > now ? lateRoll * this.plan.ttlMs * 0.4 : 0;
    return {
      requestLost:
        !healthy && (now < this.trouble.requestsCut || requestRoll < Math.max(lossy, loss.request)),
      answerLost: !healthy && answerRoll < Math.max(lossy, loss.answer),
      noticed: noticedRoll < 0.3,
      error: errorRoll < ERRORS / 2 ? "before" : errorRoll < ERRORS ? "after" : "none",
      requestMs: requestMs + late,
      answerMs,
      duplicateMs: againRoll < twice ? this.#beforeHeal(againMs) : 0,
    };
  }

  #delay(): number {
    const { medianMs, sigma, tail, tailMaxMs } = this.plan.latency;
    const base = this.#random.logNormal(medianMs, sigma);
    const roll = this.#random.next();
    // Half of the long delays stay below the ttl: those are the ones that an answer survives.
    const short = this.#random.next() < 0.5;
    const extra = this.#random.next() * (short ? this.plan.ttlMs / 2 : tailMaxMs);
    const now = this.#now;
    if (now >= this.plan.healAtMs) return base;
    const lags = this.plan.laggard === this.process.node.index && short;
    const chance = now < this.trouble.delay ? TAIL : tail;
    if (roll < chance) return this.#beforeHeal(base + extra);
    return lags ? this.#beforeHeal(base + roll * LAG * this.plan.ttlMs) : base;
  }

  /** No message of the bad days arrives in the good ones. */
  #beforeHeal(delayMs: number): number {
    return Math.min(delayMs, Math.max(1, this.plan.healAtMs - this.#now));
  }

  #arriveAfter(delayMs: number, arrive: () => void): void {
    const { scheduler } = this.host;
    scheduler.quietly(this.host.startOf(scheduler.now + delayMs), () => {
      // Stopped while the request was on its way: it waits in the socket.
      const start = this.host.startOf(scheduler.now);
      if (start > scheduler.now) scheduler.quietly(start, arrive);
      else arrive();
    });
  }

  #answer(delayMs: number, run: () => void): void {
    this.host.scheduler.at(this.#now + delayMs, () => this.process.deliver(run));
  }
}

interface Fate {
  readonly requestLost: boolean;
  readonly answerLost: boolean;
  readonly noticed: boolean;
  /** While the store errs: whether it fails before it acted, or after. */
  readonly error: "before" | "after" | "none";
  readonly requestMs: number;
  readonly answerMs: number;
  /** Zero: it arrives once. */
  readonly duplicateMs: number;
}

type Result<T> = { ok: true; value: T } | { ok: false; error: Error };

function attempt<T>(serve: () => T, err: Fate["error"], what: string): Result<T> {
  const failure = (): Result<T> => ({
    ok: false,
    error: new ConclaveError("unavailable", `${what}: the store has an internal error`),
  });
  if (err === "before") return failure();
  try {
    const value = serve();
    return err === "after" ? failure() : { ok: true, value };
  } catch (error) {
    return { ok: false, error: error instanceof Error ? error : new Error(String(error)) };
  }
}

function reasonOf(signal: Stop): Error {
  return signal.reason instanceof Error ? signal.reason : new Error("aborted");
}
