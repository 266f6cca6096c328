/**
 * One candidate's place in one election: a lock that it asks for with the session
 * it shares with others. It is used once; its token, once known, does not
 * change. What it does not know (was the lock granted?) it remembers as unknown.
 */
import { ConclaveError } from "../../kit/errors.js";
import type { Stop } from "../../kit/stop.js";
import { throwIfStopped } from "../../kit/wait.js";
import type { Heir } from "../../seam/backend.js";
import type { CallLimits, ConsulClient, KeyValue, Operation } from "./client.js";
import { SessionCandidate, type SessionCandidateRequest } from "../../session/session-candidate.js";
import { sealHeir } from "./envelope.js";
import { LOCK_FLAG } from "./keys.js";
import type { Sight, Watches } from "./watches.js";

/** A released lock's index may have moved since it was read, by a write of ours without an answer. */
const MOST_RELEASES = 3;

const VERIFY_MS = 5_000;

export interface CandidateLockRequest extends SessionCandidateRequest {
  readonly key: string;
}

/** The session that it belongs to. */
export interface CandidateLockOwner {
  readonly id: string;
  /** Whether it is the one that the session has in its election. */
  isCurrent(candidateLock: CandidateLock): boolean;
  /** Aborts when the session ends. */
  readonly ending: Stop;
  /** Its place is lost. */
  forget(candidateLock: CandidateLock): void;
}

export class CandidateLock extends SessionCandidate {
  readonly key: string;
  readonly session: string;
  /** Modify index of the transaction that took the lock, once known. */
  token: bigint | undefined;
  /** The key's modify index, as far as it is known. */
  modifyIndex = 0n;
  /** Who shall lead next, named in the write that releases the lock. */
  heir: Heir | undefined;
  /** A lock was asked for and not answered: it may be ours, or become so. */
  unanswered = false;
  readonly #client: ConsulClient;
  readonly #owner: CandidateLockOwner;
  #sight: Sight | undefined;
  #failed: { readonly error: unknown } | undefined;
  #unwatch: (() => void) | undefined;

  constructor(client: ConsulClient, owner: CandidateLockOwner, request: CandidateLockRequest) {
    super(request);
    this.#client = client;
    this.#owner = owner;
    this.session = owner.id;
    this.key = request.key;
  }

  /** Whatever is granted from now on has a higher index than what is there. */
  met(kv: KeyValue | undefined): void {
    if (kv !== undefined) this.sawToken(kv.modifyIndex + 1n);
  }

  /** The lock is ours. */
  entered(modifyIndex: bigint): void {
    this.unanswered = false;
    this.token = modifyIndex;
    this.modifyIndex = modifyIndex;
    this.sawToken(modifyIndex);
  }

  /** Whether the key, read after the lock was taken, is still of this term. */
  owns(kv: KeyValue | undefined): boolean {
    return kv?.session === this.session && this.token !== undefined && kv.modifyIndex >= this.token;
  }

  override leave(): void {
    this.#stopWatching();
    super.leave();
  }

  protected override gone(): void {
    this.#stopWatching();
    this.#owner.forget(this);
  }

  /** From here on changes of the key are news. */
  watch(watches: Watches, since: bigint): void {
    this.#unwatch ??= watches.watch(this.key, since, {
      seen: (sight) => {
        this.#sight = sight;
        this.wake();
        if (this.state === "held" && !this.owns(sight.kv)) this.#suspect();
      },
      failed: (error) => {
        this.#failed = { error };
        this.wake();
      },
    });
  }

  /** The next change of the key. Rejects when the place is lost, or with the failure of a question. */
  async sight(signal: Stop): Promise<Sight> {
    for (;;) {
      throwIfStopped(signal);
      if (this.lost !== undefined) throw this.lost;
      const [sight, failed] = [this.#sight, this.#failed];
      this.#sight = undefined;
      this.#failed = undefined;
      if (sight !== undefined) return sight;
      if (failed !== undefined) throw failed.error;
      await this.untilWoken(signal);
    }
  }

  /** Reads the key, and loses the place if it is not ours any more. */
  async verify(limits: CallLimits): Promise<void> {
    const { kvs } = await this.#client.read({ range: { key: this.key } }, limits);
    if (this.state === "held" && !this.owns(kvs[0])) this.lose("its lock is gone");
    if (this.lost !== undefined) throw this.lost;
  }

  /** What a watch says may be old, or incomplete for want of permission. */
  #suspect(): void {
    const { ending } = this.#owner;
    if (!ending.aborted) this.verify({ signal: ending, limitMs: VERIFY_MS }).catch(() => {}); // with the next renewal
  }

  /**
   * Unlocks the key, if this very term holds it. Guarded by its index, so that a
   * release which arrives late does no harm; without an answer to the lock it is
   * guarded by the session, which is not used for this election again.
   */
  async vacate(limits: CallLimits): Promise<void> {
    if (this.lost !== undefined) return;
    if (this.unanswered) {
      await this.#client.transaction([this.#unlock()], limits);
      return;
    }
    if (this.token === undefined) return;
    for (let attempt = 0; attempt < MOST_RELEASES; attempt++) {
      const guard = { verb: "check-index", key: this.key, index: this.modifyIndex } as const;
      const answer = await this.#client.transaction([guard, this.#unlock()], limits);
      if (answer.committed || answer.refusal !== "changed") return;
      const kv = (await this.#client.read({ range: { key: this.key } }, limits)).kvs[0];
      // If it was released meanwhile, by another attempt, the lock may be that of the next term on this session.
      if (kv === undefined || !this.owns(kv) || !this.#owner.isCurrent(this)) return;
      this.modifyIndex = kv.modifyIndex;
    }
    throw new ConclaveError("unavailable", `the lock of election "${this.election}" changes all the time`);
  }

  #unlock(): Operation {
    const value = this.heir === undefined ? "" : sealHeir(this.heir);
    return { verb: "unlock", key: this.key, session: this.session, value, flags: LOCK_FLAG };
  }

  #stopWatching(): void {
    this.#unwatch?.();
    this.#unwatch = undefined;
  }
}
