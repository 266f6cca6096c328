/** The candidate key of a leader, as the law sees it. */
import type { Reading } from "../../seam/clock.js";
import type { CallOptions, Extension, Heir, Hold, ReleaseOptions, Session } from "../../seam/backend.js";
import type { Stop } from "../../seam/stop.js";
import { untilAborted } from "../../kit/wait.js";
import type { CallLimits, EtcdClient } from "./client.js";
import type { CandidateKey } from "./candidate-key.js";
import type { SharedLease } from "./shared-lease.js";

export class EtcdHold implements Hold {
  readonly token: bigint;
  readonly asked: Reading;
  readonly ttlMs: number;
  readonly #client: EtcdClient;
  readonly #candidateKey: CandidateKey;
  readonly #lease: SharedLease;
  readonly #attemptMs: number;
  readonly #handOver: (heir: Heir, limits: CallLimits) => Promise<void>;

  constructor(
    client: EtcdClient,
    candidateKey: CandidateKey,
    token: bigint,
    lease: SharedLease,
    attemptMs: number,
    handOver: (heir: Heir, limits: CallLimits) => Promise<void>,
  ) {
    this.#client = client;
    this.#candidateKey = candidateKey;
    this.#lease = lease;
    this.#attemptMs = attemptMs;
    this.#handOver = handOver;
    this.token = token;
    this.asked = lease.extension.asked;
    this.ttlMs = lease.ttlMs;
    lease.handedOut(candidateKey);
  }

  get session(): Session {
    return this.#lease;
  }

  abandon(at: number): void {
    this.#lease.abandon(this.#candidateKey, at);
  }

  get revoked(): Stop {
    return this.#candidateKey;
  }

  async renew({ signal }: CallOptions): Promise<Extension | "lost"> {
    if (this.#gone) return "lost";
    try {
      return this.#handOut(await untilAborted(signal, this.#lease.renewFor(this.#candidateKey)));
    } catch (error) {
      if (this.#candidateKey.lost !== undefined) return "lost";
      throw error;
    }
  }

  /**
   * The value is written; the lease is extended by its renewals alone. That the
   * key is there is known from the answer: the last extension counts for it.
   */
  async proclaim(value: string, { signal }: CallOptions): Promise<Extension | "lost"> {
    if (this.#gone) return "lost";
    const { key, lease } = this.#candidateKey;
    const answer = await this.#client.transaction(
      {
        when: [{ target: "create", key, value: this.token }],
        then: [{ kind: "put", key, value, lease }],
        otherwise: [],
      },
      { signal, limitMs: this.#attemptMs },
    );
    if (!answer.succeeded) {
      this.#candidateKey.lose("its key is gone");
      return "lost";
    }
    return this.#handOut(this.#lease.extension);
  }

  async release({ signal, heir }: ReleaseOptions): Promise<void> {
    if (heir !== undefined && !this.#gone) await this.#handOver(heir, { signal, limitMs: this.#attemptMs });
    return this.#lease.remove(this.#candidateKey, signal, this.#attemptMs);
  }

  get #gone(): boolean {
    return this.#candidateKey.lost !== undefined || this.#candidateKey.state === "left";
  }

  #handOut(extension: Extension): Extension | "lost" {
    if (this.#gone) return "lost";
    this.#candidateKey.handedOut = extension.asked.now;
    return extension;
  }
}
