/**
 * Keys that nobody owns any more and that may still be in the store, or may yet
 * arrive there: of terms that ran out, of releases and puts without an answer.
 * They are looked for and removed as long as their lease lives.
 */
import type { Clock, Timer } from "../../seam/clock.js";
import { isRetriable } from "../../kit/errors.js";
import type { CallLimits, EtcdClient } from "./client.js";
import type { Seat } from "./seat.js";

/** etcd takes 128 operations in a transaction. */
const STRAYS_PER_LOOK = 120;
/** A put without an answer may arrive this much later; its seat is swept that long. */
const LATE_PUT_MS = 30_000;

interface Stray {
  /** Not removed before this instant: until then its leader may have believed that it led. */
  readonly from: number;
  /** Its key may still arrive until this instant. */
  readonly until: number;
}

export interface StraysOptions {
  readonly client: EtcdClient;
  readonly clock: Clock;
  /** Of every request. */
  readonly limits: CallLimits;
  /** Nothing of this seat is left in the store. */
  swept(seat: Seat): void;
}

export class Strays {
  readonly #options: StraysOptions;
  readonly #strays = new Map<Seat, Stray>();
  #sweeping = false;
  /** Asked for while another was under way. */
  #sweepAgain = false;
  /** When the next one may be removed: waiting for a renewal would keep the next leader waiting too. */
  #timer: Timer | undefined;
  #timerAt = Infinity;

  constructor(options: StraysOptions) {
    this.#options = options;
  }

  /** Its key is to be removed, but not before `from`. */
  add(seat: Seat, from = -Infinity): void {
    const until = seat.token === undefined ? this.#options.clock.now() + LATE_PUT_MS : 0;
    this.#strays.set(seat, { from, until });
    if (from > -Infinity) this.#wakeAt(from);
  }

  has(seat: Seat): boolean {
    return this.#strays.has(seat);
  }

  delete(seat: Seat): void {
    this.#strays.delete(seat);
  }

  /** Whether some of them may not be removed yet. */
  get waiting(): boolean {
    return this.#timerAt < Infinity;
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAt = Infinity;
  }

  /** A look at many of them, then only those that are there are removed. */
  async sweep(): Promise<void> {
    this.#sweepAgain = this.#sweeping;
    if (this.#sweeping) return;
    this.#sweeping = true;
    try {
      const now = this.#options.clock.now();
      const seats = [...this.#strays].flatMap(([seat, { from }]) => (from <= now ? [seat] : []));
      for (let i = 0; i < seats.length; i += STRAYS_PER_LOOK)
        await this.#sweepSome(seats.slice(i, i + STRAYS_PER_LOOK));
    } catch {
      // with the next renewal
    } finally {
      this.#sweeping = false;
    }
    if (this.#sweepAgain) await this.sweep();
  }

  /** One timer for all: the first that may be removed, then the next. */
  #wakeAt(at: number): void {
    if (at >= this.#timerAt) return;
    const { clock } = this.#options;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = clock.after(Math.max(0, at - clock.now()), () => this.#wake());
  }

  #wake(): void {
    const now = this.#options.clock.now();
    this.close();
    let next = Infinity;
    for (const { from } of this.#strays.values()) if (from > now) next = Math.min(next, from);
    if (next < Infinity) this.#wakeAt(next);
    void this.sweep();
  }

  /** A refusal may concern one of them alone: it must not keep the others in the store. */
  async #apart(seats: readonly Seat[], error: unknown): Promise<never> {
    if (seats.length > 1 && !isRetriable(error))
      await Promise.allSettled(seats.map((seat) => this.#sweepSome([seat])));
    throw error;
  }

  async #sweepSome(seats: readonly Seat[]): Promise<void> {
    const { client, clock, limits, swept } = this.#options;
    const then = seats.map(({ key }) => ({ kind: "range", key, keysOnly: true }) as const);
    const { results } = await client
      .transaction({ when: [], then, otherwise: [] }, limits)
      .catch((error: unknown) => this.#apart(seats, error));
    for (const [i, seat] of seats.entries()) {
      if (results[i]?.kvs.length !== 0) await seat.vacate(limits);
      if (clock.now() >= (this.#strays.get(seat)?.until ?? 0)) swept(seat);
    }
  }
}
