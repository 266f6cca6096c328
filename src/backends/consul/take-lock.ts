/** Taking the lock: at once if it is free, else when a change of the key says that it may be. */
import { ConclaveError, isRetriable } from "../../kit/errors.js";
import { StopSource } from "../../kit/stop.js";
import { onAbort, sleep, untilAborted } from "../../kit/wait.js";
import type { Clock } from "../../seam/clock.js";
import type { CallLimits, ConsulClient, KeyValue, Operation } from "./client.js";
import type { CandidateLock } from "./candidate-lock.js";
import { seal, unseal } from "./envelope.js";
import { assertLock, LOCK_FLAG } from "./keys.js";
import type { SharedSession } from "./shared-session.js";
import { Vacancy } from "./vacancy.js";
import type { Sight, Watches } from "./watches.js";

export interface LockRequest {
  readonly client: ConsulClient;
  readonly clock: Clock;
  readonly watches: Watches;
  readonly candidateLock: CandidateLock;
  readonly session: SharedSession;
  /** Whether a lock of this session is one of ours that nobody owns. */
  isRelic(session: string): boolean;
  readonly value: string;
  readonly wait: boolean;
  /** How long this candidate leaves a vacancy to others. */
  readonly standBackMs: () => number;
  readonly limits: CallLimits;
}

/** As long as Go's `api.Lock` waits before it tries again, and the longest we do if nobody says how long it lasts. */
const FOREIGN_PAUSE_MS = 5_000;
const SHORTEST_PAUSE_MS = 250;
/** Beyond the end of the delay: the server's timer may be a little late. */
const AFTER_DELAY_MS = 25;

/** Whether the lock is ours; `false`: it is not, and waiting was not asked for. */
export async function takeLock(request: LockRequest): Promise<boolean> {
  const { candidateLock, wait, limits } = request;
  const delay = new LockDelay(request.clock);
  const vacancy = new Vacancy(request);
  let sight = await look(request);
  for (;;) {
    const { kv } = sight;
    if (kv !== undefined) assertLock(kv);
    candidateLock.met(kv);
    delay.saw(kv);
    const holder = kv?.session;
    if (holder === undefined || holder === candidateLock.session || request.isRelic(holder)) {
      const leaveMs = holder === undefined ? vacancy.leaveMs(kv) : 0;
      if (leaveMs > 0) {
        if (!wait) return false;
        sight = await waitOut(request, sight, leaveMs);
        continue;
      }
      const outcome = await take(request, kv);
      if (outcome === "taken") return true;
      if (outcome === "changed") {
        sight = await look(request);
        continue;
      }
      if (!wait) return false;
      sight = await waitOut(request, sight, delay.pauseMs(kv));
      continue;
    }
    if (!wait) return false;
    candidateLock.watch(request.watches, sight.index);
    sight = await news(request, limits.signal);
  }
}

async function look({ client, candidateLock, limits }: LockRequest): Promise<Sight> {
  const { index, kvs } = await client.read({ range: { key: candidateLock.key } }, limits);
  return { kv: kvs[0], index };
}

/** The next change. A question that failed is asked again by the watch, unless it is refused. */
async function news({ candidateLock }: LockRequest, signal: CallLimits["signal"]): Promise<Sight> {
  for (;;) {
    try {
      return await candidateLock.sight(signal);
    } catch (error) {
      if (signal.aborted || candidateLock.lost !== undefined || !isRetriable(error)) throw error;
    }
  }
}

async function take(
  { client, clock, candidateLock, session, value, limits }: LockRequest,
  kv: KeyValue | undefined,
): Promise<"taken" | "changed" | "lock-delay"> {
  await untilAborted(limits.signal, session.fresh());
  const { key, candidate } = candidateLock;
  const envelope = {
    ...{ candidate, value, session: session.id, lockDelayMs: session.lockDelayMs, since: clock.wall() },
  };
  const lock = { verb: "lock", key, session: session.id, value: seal(envelope), flags: LOCK_FLAG } as const;
  candidateLock.unanswered = true;
  const answer = await client.transaction([...guards(key, kv), lock], limits);
  if (answer.committed) {
    candidateLock.entered(answer.modifyIndex);
    return "taken";
  }
  candidateLock.unanswered = false; // certainly not carried out
  if (answer.refusal === "lock-delay") return "lock-delay";
  if (answer.refusal === "no-session") {
    session.notFound();
    throw candidateLock.lost ?? new ConclaveError("unavailable", "Consul no longer knows the session");
  }
  return "changed";
}

/**
 * The lock is taken only if the key is still what was read: a key that is no
 * lock is never overwritten, and a request that arrives late finds another index.
 * A lock of ours that nobody owns is given back in the same step: taken twice it
 * would keep its index, and the token with it.
 */
function guards(key: string, kv: KeyValue | undefined): Operation[] {
  if (kv === undefined) return [{ verb: "check-not-exists", key }];
  const { session } = kv;
  const same: Operation = { verb: "check-index", key, index: kv.modifyIndex };
  return session === undefined
    ? [same]
    : [same, { verb: "unlock", key, session, value: "", flags: LOCK_FLAG }];
}

/** Sleeps, but not if the key changes meanwhile: then somebody else was quicker. */
async function waitOut(request: LockRequest, sight: Sight, pauseMs: number): Promise<Sight> {
  const { clock, candidateLock, limits } = request;
  candidateLock.watch(request.watches, sight.index);
  const slept = new StopSource();
  const unlink = onAbort(limits.signal, () => slept.stop(limits.signal.reason));
  const sleeping = sleep(clock, pauseMs, slept).then(() => slept.stop());
  try {
    return await news(request, slept);
  } catch (error) {
    if (limits.signal.aborted || !slept.aborted || candidateLock.lost !== undefined) throw error;
    return sight;
  } finally {
    unlink();
    slept.stop();
    await sleeping;
  }
}

/**
 * How long the lock stays closed after a session ended with it. Whoever saw it
 * held knows when that was; the leader has written down how long it lasts.
 */
class LockDelay {
  readonly #clock: Clock;
  #held = false;
  /** When a free key was first seen in this version, and whether it was seen held before. */
  #free: { readonly modifyIndex: bigint; readonly at: number; readonly witnessed: boolean } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  saw(kv: KeyValue | undefined): void {
    const held = kv?.session !== undefined;
    if (kv !== undefined && !held && this.#free?.modifyIndex !== kv.modifyIndex)
      this.#free = { modifyIndex: kv.modifyIndex, at: this.#clock.now(), witnessed: this.#held };
    this.#held = held;
  }

  /** Until the next try. */
  pauseMs(kv: KeyValue | undefined): number {
    const told = kv === undefined ? undefined : unseal(kv)?.lockDelayMs;
    const jitter = AFTER_DELAY_MS * (1 + this.#clock.random());
    if (told === undefined || this.#free === undefined) return FOREIGN_PAUSE_MS;
    const leftMs = this.#free.at + told - this.#clock.now();
    if (leftMs <= 0) return SHORTEST_PAUSE_MS + jitter; // another server leads, whose timer began later
    if (this.#free.witnessed) return leftMs + jitter;
    return Math.min(leftMs, Math.max(SHORTEST_PAUSE_MS, Math.min(FOREIGN_PAUSE_MS, told / 4))) + jitter;
  }
}
