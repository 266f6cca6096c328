/** A lock that is held, as core sees it. */
import type { CallOptions, Extension, Hold, ReleaseOptions, Session } from "../../seam/backend.js";
import type { Stop } from "../../seam/stop.js";
import type { Reading } from "../../seam/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import { untilAborted } from "../../kit/wait.js";
import type { ConsulClient } from "./client.js";
import type { CandidateLock } from "./candidate-lock.js";
import { seal } from "./envelope.js";
import { LOCK_FLAG } from "./keys.js";
import type { SharedSession } from "./shared-session.js";

/** A value whose answer was lost may have moved the index; then it is read and the value written once more. */
const MOST_WRITES = 3;

export class ConsulHold implements Hold {
  readonly token: bigint;
  readonly asked: Reading;
  readonly ttlMs: number;
  readonly #client: ConsulClient;
  readonly #candidateLock: CandidateLock;
  readonly #session: SharedSession;
  readonly #attemptMs: number;
  readonly #since: number;
  /** Values are written one after the other. */
  #writing: Promise<unknown> = Promise.resolve();

  constructor(
    client: ConsulClient,
    candidateLock: CandidateLock,
    session: SharedSession,
    term: { readonly token: bigint; readonly since: number; readonly attemptMs: number },
  ) {
    this.#client = client;
    this.#candidateLock = candidateLock;
    this.#session = session;
    this.#attemptMs = term.attemptMs;
    this.#since = term.since;
    this.token = term.token;
    this.asked = session.extension.asked;
    this.ttlMs = session.ttlMs;
    session.handedOut(candidateLock);
  }

  get session(): Session {
    return this.#session;
  }

  get revoked(): Stop {
    return this.#candidateLock;
  }

  abandon(at: number): void {
    this.#session.abandon(this.#candidateLock, at);
  }

  async renew({ signal }: CallOptions): Promise<Extension | "lost"> {
    if (this.#gone) return "lost";
    try {
      const limits = { signal, limitMs: this.#attemptMs };
      return this.#handOut(await untilAborted(signal, this.#session.keep(this.#candidateLock, limits)));
    } catch (error) {
      if (this.#candidateLock.lost !== undefined) return "lost";
      throw error;
    }
  }

  /**
   * The value is written; the session is extended by its renewals alone. That the
   * lock is ours is known from the answer: the last extension counts for it.
   */
  async proclaim(value: string, { signal }: CallOptions): Promise<Extension | "lost"> {
    const writing = this.#writing.then(() => this.#write(value, signal));
    this.#writing = writing.catch(() => {});
    return untilAborted(signal, writing);
  }

  /** The heir is named in the write that releases the lock, however often it takes: it is guarded by the lock's index. */
  release({ signal, heir }: ReleaseOptions): Promise<void> {
    if (heir !== undefined && !this.#gone) this.#candidateLock.heir = heir;
    return this.#session.vacate(this.#candidateLock, signal, this.#attemptMs);
  }

  async #write(value: string, signal: AbortSignal): Promise<Extension | "lost"> {
    const { key, candidate } = this.#candidateLock;
    const { id: session, lockDelayMs } = this.#session;
    const limits = { signal, limitMs: this.#attemptMs };
    const envelope = { candidate, value, session, lockDelayMs, token: this.token, since: this.#since };
    for (let attempt = 0; attempt < MOST_WRITES; attempt++) {
      if (this.#gone) return "lost";
      const guard = { verb: "check-index", key, index: this.#candidateLock.modifyIndex } as const;
      const lock = { verb: "lock", key, session, value: seal(envelope), flags: LOCK_FLAG } as const;
      const answer = await this.#client.transaction([guard, lock], limits);
      if (answer.committed) {
        this.#candidateLock.modifyIndex = answer.modifyIndex;
        return this.#handOut(this.#session.extension);
      }
      if (answer.refusal === "no-session") this.#session.notFound();
      const { kvs } = await this.#client.read({ range: { key } }, limits);
      if (!this.#candidateLock.owns(kvs[0])) this.#candidateLock.lose("its lock is gone");
      else if (kvs[0] !== undefined) this.#candidateLock.modifyIndex = kvs[0].modifyIndex;
    }
    if (this.#gone) return "lost";
    throw new ConclaveError(
      "unavailable",
      `the key of election "${this.#candidateLock.election}" changes all the time`,
    );
  }

  get #gone(): boolean {
    return this.#candidateLock.lost !== undefined || this.#candidateLock.state === "left";
  }

  #handOut(extension: Extension): Extension | "lost" {
    if (this.#gone) return "lost";
    this.#candidateLock.handedOut = Math.max(this.#candidateLock.handedOut, extension.asked.now);
    return extension;
  }
}
