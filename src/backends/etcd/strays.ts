/**
 * Keys that nobody owns any more and that may still be in the store, or may yet
 * arrive there: of terms that ran out, of releases and puts without an answer.
 * They are looked for and taken away as long as their lease lives.
 */
import type { Clock } from "../../seam/clock.js";
import { isRetriable } from "../../kit/errors.js";
import type { CallLimits, EtcdClient } from "./client.js";
import type { Seat } from "./seat.js";

/** etcd takes 128 operations in a transaction. */
const STRAYS_PER_LOOK = 120;
/** A put without an answer may arrive this much later; its seat is swept that long. */
const LATE_PUT_MS = 30_000;

export class Strays {
  readonly #client: EtcdClient;
  readonly #clock: Clock;
  /** Each with the instant until which its key may still arrive. */
  readonly #until = new Map<Seat, number>();
  #sweeping = false;

  constructor(client: EtcdClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  add(seat: Seat): void {
    this.#until.set(seat, seat.token === undefined ? this.#clock.now() + LATE_PUT_MS : 0);
  }

  has(seat: Seat): boolean {
    return this.#until.has(seat);
  }

  delete(seat: Seat): void {
    this.#until.delete(seat);
  }

  /** A look at many of them, then only those that are there are taken away. Calls `swept` for each that is done with. */
  async sweep(limits: CallLimits, swept: (seat: Seat) => void): Promise<void> {
    if (this.#sweeping) return;
    this.#sweeping = true;
    try {
      const seats = [...this.#until.keys()];
      for (let i = 0; i < seats.length; i += STRAYS_PER_LOOK)
        await this.#sweepSome(seats.slice(i, i + STRAYS_PER_LOOK), limits, swept);
    } catch {
      // with the next renewal
    } finally {
      this.#sweeping = false;
    }
  }

  /** A refusal may concern one of them alone: it must not keep the others in the store. */
  async #apart(
    seats: readonly Seat[],
    error: unknown,
    limits: CallLimits,
    swept: (seat: Seat) => void,
  ): Promise<never> {
    if (seats.length > 1 && !isRetriable(error))
      await Promise.allSettled(seats.map((seat) => this.#sweepSome([seat], limits, swept)));
    throw error;
  }

  async #sweepSome(seats: readonly Seat[], limits: CallLimits, swept: (seat: Seat) => void): Promise<void> {
    const then = seats.map(({ key }) => ({ kind: "range", key, keysOnly: true }) as const);
    const { results } = await this.#client
      .transaction({ when: [], then, otherwise: [] }, limits)
      .catch((error: unknown) => this.#apart(seats, error, limits, swept));
    for (const [i, seat] of seats.entries()) {
      if (results[i]?.kvs.length !== 0) await seat.vacate(limits);
      if (this.#clock.now() >= (this.#until.get(seat) ?? 0)) swept(seat);
    }
  }
}
