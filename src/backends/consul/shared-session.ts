/**
 * One Consul session under the locks of many elections: renewed here, once for all of them,
 * while anybody leads or waits on it. Its time counts from the question and lasts
 * one ttl: Consul itself waits twice as long, but a server that was deposed may
 * have answered the question.
 */
import type { Extension } from "../../seam/backend.js";
import type { Clock, Reading } from "../../seam/clock.js";
import { readClocks } from "../../kit/clock.js";
import { ConclaveError, isConclaveError, isRetriable } from "../../kit/errors.js";
import type { Stop } from "../../kit/stop.js";
import { KeptSession } from "../../session/kept-session.js";
import { bounded, limited } from "../../kit/wait.js";
import type { CallLimits, ConsulClient } from "./client.js";
import { CandidateLock, type CandidateLockRequest } from "./candidate-lock.js";
import { OrphanedLocks } from "./orphaned-locks.js";
import type { Watches } from "./watches.js";

/** Consul takes 64 operations in a transaction. */
const LOCKS_AT_ONCE = 64;
/** Longest that one request of a renewal may take, however long the ttl is. */
const LONGEST_RENEWAL_MS = 3_000;

export interface SharedSessionOptions {
  readonly client: ConsulClient;
  readonly clock: Clock;
  readonly watches: Watches;
  readonly id: string;
  readonly ttlMs: number;
  /** How long Consul keeps locks closed if it ends with them. */
  readonly lockDelayMs: number;
  readonly asked: Reading;
  /** Called when it is of no use any more. */
  readonly retired: () => void;
}

export class SharedSession extends KeptSession<CandidateLock> {
  readonly id: string;
  readonly lockDelayMs: number;
  readonly #client: ConsulClient;
  readonly #watches: Watches;
  readonly #orphans: OrphanedLocks;
  /** One for each election: to Consul a session is one holder. Orphaned locks keep theirs until they are released. */
  readonly #elections = new Map<string, CandidateLock>();
  /** Elections with a request that may still arrive: another one by this session could be ended by it. */
  readonly #spent = new Set<string>();
  #closed: Promise<void> = Promise.resolve();

  constructor(options: SharedSessionOptions) {
    const { clock, ttlMs, asked, retired } = options;
    super({ clock, ttlMs, asked, retired, renewMs: ttlMs / 3, over: "the Consul session has ended" });
    this.#client = options.client;
    this.#watches = options.watches;
    this.id = options.id;
    this.lockDelayMs = options.lockDelayMs;
    const limits = { signal: this.closing.signal, limitMs: ttlMs / 4 };
    this.#orphans = new OrphanedLocks({
      clock,
      limits,
      removed: (candidateLock) => this.forget(candidateLock),
    });
  }

  get ending(): Stop {
    return this.closing.signal;
  }

  /** Whether its extension is young enough to build on. */
  get isFresh(): boolean {
    return this.ageMs < this.ttlMs / 2;
  }

  /** Whether a candidate of this election may use it. */
  serves(election: string): boolean {
    if (this.ended || this.#elections.has(election) || this.#spent.has(election)) return false;
    return this.candidates.size > 0 || this.isFresh;
  }

  isCurrent(candidateLock: CandidateLock): boolean {
    return this.#elections.get(candidateLock.election) === candidateLock;
  }

  /** Whether somebody of ours waits or leads by it in this election, or has to be released. */
  hasCandidateLock(election: string): boolean {
    return this.#elections.has(election);
  }

  enter(request: CandidateLockRequest): CandidateLock {
    const candidateLock = new CandidateLock(this.#client, this, request);
    this.#elections.set(request.election, candidateLock);
    this.candidates.add(candidateLock);
    return candidateLock;
  }

  async fresh(): Promise<Extension> {
    return this.isFresh ? this.extension : this.renew();
  }

  /** A newer extension for this hold, after which its lock was read. */
  async keep(candidateLock: CandidateLock, limits: CallLimits): Promise<Extension> {
    for (let attempt = 0; attempt < 2; attempt++) {
      if (candidateLock.lost !== undefined) throw candidateLock.lost;
      const extension = await this.renew();
      // One that had begun earlier may be the one that was handed out already.
      if (extension.asked.now <= candidateLock.handedOut) continue;
      await candidateLock.verify(limits);
      return extension;
    }
    throw new ConclaveError("unavailable", "the session was not renewed anew; asking again");
  }

  /** A hold was given out. */
  override handedOut(candidateLock: CandidateLock): void {
    super.handedOut(candidateLock);
    candidateLock.watch(this.#watches, candidateLock.modifyIndex);
  }

  /** Releases the lock. If that fails it is tried again as long as the session lives. */
  async vacate(candidateLock: CandidateLock, signal: Stop, limitMs: number): Promise<void> {
    if (candidateLock.state === "left" && !this.#orphans.has(candidateLock)) return;
    if (candidateLock.unanswered) this.#spent.add(candidateLock.election);
    try {
      await candidateLock.vacate({ signal, limitMs });
    } catch (error) {
      this.orphan(candidateLock);
      throw error;
    }
    // The request for the lock itself may still be on its way.
    if (candidateLock.unanswered && candidateLock.lost === undefined) this.orphan(candidateLock);
    else this.#leave(candidateLock);
  }

  /** The store refused a write with "no such session". */
  notFound(): void {
    this.lose("its session is gone");
  }

  /** The store was restored: it may have locks of this session that were released since. None of them is kept. */
  giveUp(limitMs: number): Promise<void> {
    if (this.ended) return this.#closed;
    this.lose("Consul was restored from a snapshot");
    const limits = { signal: new AbortController().signal, limitMs };
    this.#closed = this.#client.destroySession(this.id, limits).catch(() => {}); // it runs out by itself
    return this.#closed;
  }

  /** Ends it: locks are released first, since Consul keeps those of a destroyed session closed for a while. */
  close(limitMs: number): Promise<void> {
    if (this.ended) return this.#closed;
    const mayLead = this.mayLead || this.#orphans.waiting;
    const orphans = this.#orphans.size > 0 && !mayLead ? this.#orphans.sweep() : Promise.resolve();
    // Somebody may still believe that it leads: only the delay keeps others away until its time is over.
    const destroy = !mayLead || this.lockDelayMs >= this.ttlMs;
    const never = new AbortController().signal;
    this.#closed = bounded(this.clock, limitMs, never, "ending the session", async (signal) => {
      await orphans;
      this.end();
      if (destroy && !signal.aborted) await this.#client.destroySession(this.id, { signal, limitMs });
    })
      .catch(() => {}) // it runs out by itself
      .finally(() => {
        this.end();
        this.retired();
      });
    return this.#closed;
  }

  protected override async extend(): Promise<Extension> {
    if (this.ended) throw new ConclaveError("unavailable", "the Consul session has ended");
    // Short, so that a connection that has gone silent is found in time for another try.
    const limitMs = Math.min(LONGEST_RENEWAL_MS, this.ttlMs / 6);
    const { signal: closing } = this.closing;
    return limited(this.clock, this.ttlMs / 4, closing, "renewing the Consul session", (signal) =>
      this.#extend({ signal, limitMs }),
    );
  }

  protected override renewalFailed(error: unknown): void {
    // What waits for news waits on the same path.
    if (isConclaveError(error) && error.code === "timeout") this.#client.distrust();
    // Nobody leads by it any more, and nobody may renew it.
    if (!isRetriable(error) && this.ageMs > this.ttlMs) void this.close(this.ttlMs / 4);
  }

  async #extend(limits: CallLimits): Promise<Extension> {
    const asked = readClocks(this.clock);
    if (!(await this.#client.renewSession(this.id, limits))) {
      // A server that has just begun to lead may not have read of it yet.
      if (await this.#client.hasSession(this.id, limits))
        throw new ConclaveError("unavailable", "Consul denied the session but still has it; asking again");
      this.lose("its session is gone");
      throw new ConclaveError("unavailable", "Consul no longer knows the session");
    }
    await this.#verifyAll(limits);
    return { asked };
  }

  /** An extension counts for all who hold on this session: each must still have its lock. */
  async #verifyAll(limits: CallLimits): Promise<void> {
    const held = [...this.candidates].filter(({ state }) => state === "held");
    for (let i = 0; i < held.length; i += LOCKS_AT_ONCE) {
      const some = held.slice(i, i + LOCKS_AT_ONCE);
      if (await this.#client.holds(some, limits)) continue;
      await Promise.all(some.map((candidateLock) => unlessLost(candidateLock, candidateLock.verify(limits))));
    }
  }

  protected override async due(): Promise<number | undefined> {
    if (this.candidates.size > 0 || this.#orphans.size > 0) return (await this.renew()).asked.now;
    await this.close(this.ttlMs / 4);
    return undefined;
  }

  forget(candidateLock: CandidateLock): void {
    this.candidates.delete(candidateLock);
    this.#orphans.delete(candidateLock);
    if (this.#elections.get(candidateLock.election) === candidateLock)
      this.#elections.delete(candidateLock.election);
  }

  protected override orphan(candidateLock: CandidateLock, from?: number): void {
    if (candidateLock.state === "left") return;
    candidateLock.leave();
    this.candidates.delete(candidateLock);
    this.#orphans.add(candidateLock, from);
  }

  protected override end(): void {
    super.end();
    this.#orphans.close();
  }

  #leave(candidateLock: CandidateLock): void {
    candidateLock.leave();
    this.forget(candidateLock);
  }
}

/** Whoever has lost its lock has heard of it; the others go on. */
async function unlessLost(candidateLock: CandidateLock, verifying: Promise<void>): Promise<void> {
  try {
    await verifying;
  } catch (error) {
    if (candidateLock.lost === undefined) throw error;
  }
}
