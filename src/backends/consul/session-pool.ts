/**
 * The sessions of one backend: one for each ttl, shared by all its elections. A
 * second candidate of the same election needs one of its own, since to Consul a
 * session is one holder.
 */
import { readClocks } from "../../kit/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import { bounded, sharedController, untilAborted } from "../../kit/wait.js";
import type { Clock } from "../../seam/clock.js";
import type { CallLimits, ConsulClient } from "./client.js";
import type { CandidateLock, CandidateLockRequest } from "./candidate-lock.js";
import { SharedSession } from "./shared-session.js";
import type { Watches } from "./watches.js";

/** Consul keeps locks closed for no longer. */
const LONGEST_LOCK_DELAY_MS = 60_000;
/** How long a session that is given up may take to be ended; after that it runs out by itself. */
const GIVE_UP_MS = 2_000;

export interface SessionPoolOptions {
  readonly client: ConsulClient;
  readonly clock: Clock;
  readonly watches: Watches;
  /** Default: as long as the ttl. */
  readonly lockDelayMs: number | undefined;
}

export class SessionPool {
  readonly #options: SessionPoolOptions;
  readonly #sessions = new Map<number, Set<SharedSession>>();
  readonly #creating = new Map<number, Promise<unknown>>();
  /** Requests that end sessions which were given up: a closed backend has none under way. */
  readonly #ending = new Set<Promise<void>>();
  readonly #closing = sharedController();

  constructor(options: SessionPoolOptions) {
    this.#options = options;
  }

  /** A place, nothing of it in the store yet, on a session of at least this ttl. */
  async enter(
    request: CandidateLockRequest & { readonly ttlMs: number },
    limits: CallLimits,
  ): Promise<{ readonly candidateLock: CandidateLock; readonly session: SharedSession }> {
    const seconds = Math.ceil(request.ttlMs / 1000);
    for (;;) {
      for (const session of this.#sessions.get(seconds) ?? [])
        if (session.serves(request.election)) return { session, candidateLock: session.enter(request) };
      await untilAborted(limits.signal, this.#create(seconds, limits.limitMs));
    }
  }

  /** Whether a lock of this session in this election is ours and nobody's: a request that arrived late, or a restored store. */
  isRelic(session: string, election: string): boolean {
    for (const set of this.#sessions.values())
      for (const own of set) if (own.id === session) return !own.hasCandidateLock(election);
    return false;
  }

  /** The store was restored from a snapshot. */
  giveUp(): void {
    for (const set of [...this.#sessions.values()]) {
      for (const session of [...set]) {
        const ending = session.giveUp(GIVE_UP_MS).finally(() => this.#ending.delete(ending));
        this.#ending.add(ending);
      }
    }
  }

  async close(limitMs: number): Promise<void> {
    this.#closing.abort(closed());
    await Promise.allSettled(
      [...this.#sessions.values()].flatMap((set) => [...set].map((session) => session.close(limitMs))),
    );
    await Promise.allSettled([...this.#creating.values(), ...this.#ending]);
  }

  /** One request, however many candidates wait for it. */
  #create(seconds: number, limitMs: number): Promise<unknown> {
    const creating =
      this.#creating.get(seconds) ??
      this.#ask(seconds, limitMs).finally(() => {
        this.#creating.delete(seconds);
      });
    this.#creating.set(seconds, creating);
    return creating;
  }

  async #ask(seconds: number, limitMs: number): Promise<void> {
    const { client, clock, watches } = this.#options;
    const ttlMs = seconds * 1000;
    const lockDelayMs = this.#options.lockDelayMs ?? Math.min(ttlMs, LONGEST_LOCK_DELAY_MS);
    const asked = readClocks(clock);
    // One whose answer is lost holds nothing, and runs out by itself.
    const id = await bounded(clock, limitMs, this.#closing.signal, "creating a session", (signal) =>
      client.createSession({ name: "conclave", ttlSeconds: seconds, lockDelayMs }, { signal, limitMs }),
    );
    const set = this.#sessions.get(seconds) ?? new Set();
    this.#sessions.set(seconds, set);
    const session = new SharedSession({
      ...{ client, clock, watches, id, ttlMs, lockDelayMs, asked },
      retired: () => set.delete(session),
    });
    set.add(session);
  }
}

export function closed(): ConclaveError {
  return new ConclaveError("state", "this Consul backend is closed; open a new one");
}
