/**
 * A session of a store that many candidates share, renewed here, once for all of
 * them. A store says how it is extended and how it is ended.
 */
import { ConclaveError } from "../kit/errors.js";
import { RenewalLoop } from "../kit/renewal.js";
import { sharedController } from "../kit/wait.js";
import type { Extension, Session, SessionFollower } from "../seam/backend.js";
import type { Clock, Reading } from "../seam/clock.js";
import { SessionFollowers } from "./followers.js";
import type { SessionCandidate } from "./session-candidate.js";

export interface KeptSessionOptions {
  readonly clock: Clock;
  /** What the store granted. */
  readonly ttlMs: number;
  /** Pause between two renewals. */
  readonly renewMs: number;
  /** The clocks just before the session was asked for. */
  readonly asked: Reading;
  /** What is said of requests that are under way when it ends. */
  readonly over: string;
  /** Called when it is of no use any more. */
  readonly retired: () => void;
}

export abstract class KeptSession<C extends SessionCandidate> implements Session {
  readonly ttlMs: number;
  protected readonly clock: Clock;
  protected readonly candidates = new Set<C>();
  protected readonly retired: () => void;
  /** Aborts when the session ends. */
  protected readonly closing = sharedController();
  readonly #over: string;
  readonly #renewals: RenewalLoop<number | undefined>;
  readonly #followers: SessionFollowers<C>;
  #extension: Extension;
  #renewing: Promise<Extension> | undefined;
  #ended = false;

  constructor(options: KeptSessionOptions) {
    const { clock, ttlMs, renewMs, asked } = options;
    this.clock = clock;
    this.ttlMs = ttlMs;
    this.retired = options.retired;
    this.#over = options.over;
    this.#extension = { asked };
    this.#followers = new SessionFollowers({
      ...{ clock, ttlMs, candidates: () => this.candidates, extendedAt: () => this.#extension.asked.now },
      expired: (candidate) => this.orphan(candidate),
    });
    this.#renewals = new RenewalLoop({
      ...{ clock, renewMs, attemptMs: ttlMs / 4, leftMs: () => Infinity },
      ask: () => this.due(),
      answered: (askedAt) => askedAt,
      failed: () => !this.ended,
    });
    this.#renewals.start(asked.now);
  }

  get extension(): Extension {
    return this.#extension;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get ageMs(): number {
    return this.clock.now() - this.#extension.asked.now;
  }

  /** Whether a term may be held on it. */
  protected get mayLead(): boolean {
    return this.ageMs < this.ttlMs && [...this.candidates].some(({ state }) => state === "held");
  }

  follow(follower: SessionFollower): () => void {
    return this.#followers.follow(follower);
  }

  /** A hold was returned for this candidate. */
  handedOut(candidate: C): void {
    candidate.state = "held";
    candidate.handedOut = this.#extension.asked.now;
    this.#followers.handedOut();
  }

  /** The term ended without a release: what it has in the store is removed when its lease would have expired. */
  abandon(candidate: C, at: number): void {
    if (candidate.state === "held") this.orphan(candidate, at);
  }

  /** One renewal now, shared with everybody who asks while it is under way. */
  renew(): Promise<Extension> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  /** Asks the store to extend the session. What it returns counts for every candidate on it. */
  protected abstract extend(): Promise<Extension>;

  /** A renewal is due. The time from which the next one is; `undefined`: nobody uses the session and it is given up. */
  protected abstract due(): Promise<number | undefined>;

  /** Nobody owns what this candidate has in the store any more: it is removed, not before `from`. */
  protected abstract orphan(candidate: C, from?: number): void;

  /** A renewal failed, and those who follow know it. */
  protected renewalFailed(_error: unknown): void {}

  /** The store proved that the session lived then. */
  protected extendTo(extension: Extension): void {
    if (extension.asked.now > this.#extension.asked.now) this.#extension = extension;
  }

  /** The store says that the session is gone. */
  protected lose(why: string): void {
    this.end();
    this.retired();
    this.tellLost(why);
  }

  /** Followers first: none of their terms is held any more. */
  protected tellLost(why: string): void {
    this.#followers.lost();
    for (const candidate of [...this.candidates]) candidate.lose(why);
    this.candidates.clear();
  }

  /** For good: no renewal follows, and requests that are under way are given up. */
  protected end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#renewals.stop();
    this.#followers.end();
    this.closing.abort(new ConclaveError("unavailable", this.#over));
  }

  async #renew(): Promise<Extension> {
    const startedAt = this.clock.now();
    try {
      this.extendTo(await this.extend());
      this.#renewals.start(startedAt);
      this.#followers.attempted({ latencyMs: this.clock.now() - startedAt });
      return this.#extension;
    } catch (error) {
      this.#followers.attempted({ latencyMs: this.clock.now() - startedAt, error });
      this.renewalFailed(error);
      throw error;
    }
  }
}
