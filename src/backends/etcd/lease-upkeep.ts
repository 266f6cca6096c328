/**
 * Keeps a lease alive: one renewal at a time, a third of the ttl after the last.
 * It says what came of each; what that means for the keys on the lease is for
 * its owner to say.
 */
import type { Extension } from "../../seam/backend.js";
import type { Clock, Reading } from "../../seam/clock.js";
import type { Stop } from "../../seam/stop.js";
import { ConclaveError, isRetriable } from "../../kit/errors.js";
import { RenewalLoop } from "../../kit/renewal.js";
import { limited } from "../../kit/wait.js";
import type { Attempt } from "../../session/followers.js";
import type { CandidateKey } from "./candidate-key.js";
import type { CallLimits, EtcdClient } from "./client.js";
import { renewLease } from "./renew-lease.js";

/** Whose lease it is. */
export interface LeaseOwner {
  ended(): boolean;
  /** Everyone on the lease. */
  candidateKeys(): readonly CandidateKey[];
  /** Some key this candidate may read, for renewals before there is a candidate key. */
  anyKey(): string;
  /** Called when a renewal is due; `undefined`: nobody uses the lease and it is given up. */
  due(): Promise<Extension | undefined>;
  /** Refused for this key only: no renewal counts for it. */
  denied(candidateKey: CandidateKey, error: unknown): void;
  attempted(attempt: Attempt): void;
  renewed(): void;
  /** A renewal was refused for good, and no term can be held on the lease any more. */
  useless(): void;
  /** The store says that there is no such lease. */
  gone(): void;
  /** The store has forgotten writes. What is to be thrown. */
  wentBack(known: bigint, revision: bigint): ConclaveError;
}

export interface LeaseUpkeepOptions {
  readonly client: EtcdClient;
  readonly clock: Clock;
  readonly id: bigint;
  readonly ttlMs: number;
  readonly asked: Reading;
  readonly owner: LeaseOwner;
  /** Stops what is under way. */
  readonly signal: Stop;
}

export class LeaseUpkeep {
  readonly #options: LeaseUpkeepOptions;
  readonly #renewals: RenewalLoop<Extension | undefined>;
  #extension: Extension;
  #renewing: Promise<Extension> | undefined;
  #rounds = 0;
  /** The highest revision that the cluster answered with. */
  #revision = 0n;

  constructor(options: LeaseUpkeepOptions) {
    const { clock, ttlMs, asked, owner } = options;
    this.#options = options;
    this.#extension = { asked };
    this.#renewals = new RenewalLoop({
      clock,
      renewMs: ttlMs / 3,
      attemptMs: ttlMs / 4,
      leftMs: () => Infinity,
      ask: () => owner.due(),
      answered: (extension) => extension?.asked.now,
      failed: () => !owner.ended(),
    });
    this.#renewals.start(asked.now);
  }

  /** The last one that the store confirmed. */
  get extension(): Extension {
    return this.#extension;
  }

  get ageMs(): number {
    return this.#options.clock.now() - this.#extension.asked.now;
  }

  /** One renewal now, shared with everybody who asks while it is under way. */
  renew(): Promise<Extension> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  /** For good. */
  stop(): void {
    this.#renewals.stop();
  }

  async #renew(): Promise<Extension> {
    const { clock, ttlMs, signal, owner } = this.#options;
    const startedAt = clock.now();
    // Shorter than the whole: a connection that has gone silent is found in time for another try elsewhere.
    const limitMs = ttlMs / 6;
    try {
      const extension = await limited(clock, ttlMs / 4, signal, "renewing the etcd lease", (stop) =>
        this.#extend({ signal: stop, limitMs, urgent: true }),
      );
      this.#extension = extension;
      this.#renewals.start(extension.asked.now);
      owner.attempted({ latencyMs: clock.now() - startedAt });
      owner.renewed();
      return extension;
    } catch (error) {
      owner.attempted({ latencyMs: clock.now() - startedAt, error });
      // No term is held on it and its keys may not be read: kept alive, the keys would block other candidates.
      if (!isRetriable(error) && this.ageMs > ttlMs) owner.useless();
      throw error;
    }
  }

  async #extend(limits: CallLimits): Promise<Extension> {
    const { client, clock, id, owner } = this.#options;
    const known = this.#revision;
    const renewal = await renewLease(client, clock, {
      ...{ lease: id, round: this.#rounds++, anyKey: owner.anyKey(), limits },
      // Read after the keep-alive, so that keys added meanwhile are included.
      candidateKeys: () => owner.candidateKeys(),
      denied: (candidateKey, error) => owner.denied(candidateKey, error),
    });
    if (renewal.revision < known) throw owner.wentBack(known, renewal.revision);
    this.#revision = renewal.revision;
    if (renewal.extension !== undefined) return renewal.extension;
    owner.gone();
    throw new ConclaveError("unavailable", "etcd no longer knows the lease");
  }
}
