/** A seat in office, as core sees it. */
import type { Reading } from "../../seam/clock.js";
import type { CallOptions, Extension, Hold, Revocation, Session } from "../../seam/backend.js";
import { untilAborted } from "../../kit/wait.js";
import type { EtcdClient } from "./client.js";
import type { Seat } from "./seat.js";
import type { SharedLease } from "./shared-lease.js";

export class EtcdHold implements Hold {
  readonly token: bigint;
  readonly asked: Reading;
  readonly ttlMs: number;
  readonly #client: EtcdClient;
  readonly #seat: Seat;
  readonly #lease: SharedLease;
  readonly #attemptMs: number;

  constructor(client: EtcdClient, seat: Seat, token: bigint, lease: SharedLease, attemptMs: number) {
    this.#client = client;
    this.#seat = seat;
    this.#lease = lease;
    this.#attemptMs = attemptMs;
    this.token = token;
    this.asked = lease.extension.asked;
    this.ttlMs = lease.ttlMs;
    lease.handedOut(seat);
  }

  get session(): Session {
    return this.#lease;
  }

  abandon(at: number): void {
    this.#lease.abandon(this.#seat, at);
  }

  get revoked(): Revocation {
    return this.#seat;
  }

  async renew({ signal }: CallOptions): Promise<Extension | "lost"> {
    if (this.#gone) return "lost";
    try {
      return this.#handOut(await untilAborted(signal, this.#lease.keep(this.#seat)));
    } catch (error) {
      if (this.#seat.lost !== undefined) return "lost";
      throw error;
    }
  }

  /**
   * The value is written; the lease is extended by its renewals alone. That the
   * key is there is known from the answer: the last extension counts for it.
   */
  async proclaim(value: string, { signal }: CallOptions): Promise<Extension | "lost"> {
    if (this.#gone) return "lost";
    const { key, lease } = this.#seat;
    const answer = await this.#client.transaction(
      {
        when: [{ target: "create", key, value: this.token }],
        then: [{ kind: "put", key, value, lease }],
        otherwise: [],
      },
      { signal, limitMs: this.#attemptMs },
    );
    if (!answer.succeeded) {
      this.#seat.lose("its key is gone");
      return "lost";
    }
    return this.#handOut(this.#lease.extension);
  }

  release({ signal }: CallOptions): Promise<void> {
    return this.#lease.vacate(this.#seat, signal, this.#attemptMs);
  }

  get #gone(): boolean {
    return this.#seat.lost !== undefined || this.#seat.state === "left";
  }

  #handOut(extension: Extension): Extension | "lost" {
    if (this.#gone) return "lost";
    this.#seat.handedOut = extension.asked.now;
    return extension;
  }
}
