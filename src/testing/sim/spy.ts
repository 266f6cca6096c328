/** Stands between an election and its backend, and watches in which order office is given up. */
import type { Backend, CallOptions, Extension, Hold } from "../../core/backend.js";
import type { Clock } from "../../core/clock.js";
import type { Monitor } from "./monitor.js";

export interface SpyOptions {
  readonly owner: string;
  readonly clock: Clock;
  readonly monitor: Monitor;
  readonly drainMs: number;
}

export function spied(backend: Backend, options: SpyOptions): Backend {
  return {
    name: backend.name,
    guarantees: backend.guarantees,
    ...("defaults" in backend && { defaults: backend.defaults }),
    records: backend.records,
    campaign: async (candidacy, call) => {
      const hold = await backend.campaign(candidacy, call);
      return hold === null ? null : new SpiedHold(hold, options);
    },
    observe: (election, call) => backend.observe(election, call),
    [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
  };
}

class SpiedHold implements Hold {
  readonly token: bigint;
  readonly askedAt: number;
  readonly ttlMs: number;
  readonly revoked: AbortSignal | undefined;
  readonly #hold: Hold;
  readonly #options: SpyOptions;
  #extendedAt: number;

  constructor(hold: Hold, options: SpyOptions) {
    this.token = hold.token;
    this.askedAt = hold.askedAt;
    this.ttlMs = hold.ttlMs;
    this.revoked = hold.revoked;
    this.#hold = hold;
    this.#options = options;
    this.#extendedAt = hold.askedAt;
  }

  async renew(options: CallOptions): Promise<Extension | "lost"> {
    return this.#extended(await this.#hold.renew(options));
  }

  async proclaim(value: string, options: CallOptions): Promise<Extension | "lost"> {
    return this.#extended(await this.#hold.proclaim(value, options));
  }

  release(options: CallOptions): Promise<void> {
    this.#checkOrder();
    return this.#hold.release(options);
  }

  #extended(answer: Extension | "lost"): Extension | "lost" {
    if (answer !== "lost") this.#extendedAt = Math.max(this.#extendedAt, answer.askedAt);
    return answer;
  }

  /** Work that still runs forbids it, unless it had its time to stop, or the office ran out anyway. */
  #checkOrder(): void {
    const { owner, clock, monitor, drainMs } = this.#options;
    const record = monitor.recordOf(this.token, owner);
    monitor.note(`${owner} releases ${this.token}`);
    if (record === undefined || record.work !== "running") return;
    const now = clock.now();
    const drained = record.abortedAt !== undefined && now >= record.abortedAt + drainMs;
    const over = now >= this.#extendedAt + this.ttlMs;
    if (!drained && !over) monitor.violate("stop-order", `${owner} gave ${this.token} back while its work still ran`);
  }
}
