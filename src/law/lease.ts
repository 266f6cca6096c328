/**
 * A lease that is kept: one deadline, one renewal and one watchdog, whatever
 * the number of terms on it. The renewal moves the deadline. The watchdog ends
 * the terms at the deadline, even while a renewal hangs. A term that is asked
 * whether it is held reads this deadline from the clock.
 *
 * The law renews where every hold has a lease of its own; the backend renews
 * where many holds share a session. Never both.
 */
import type { Extension, Hold, Session } from "../seam/backend.js";
import type { Clock, Timer } from "../seam/clock.js";
import type { Deadline } from "./deadline.js";
import { RenewalLoop } from "../kit/renewal.js";
import type { Timing } from "./timing.js";

/** One attempt to renew, as the terms on the lease learn of it. */
export interface Attempt {
  readonly latencyMs: number;
  /** Why it failed, if it did. */
  readonly error?: unknown;
}

/** A user of a lease: a term. */
export interface Tenant {
  attempted(attempt: Attempt): void;
  /** The deadline was moved, after an attempt that failed. */
  extended(): void;
  /** The deadline has passed: nothing extends the lease any more. */
  expired(): void;
  /** The store says that the lease is gone. */
  revoked(detail: string): void;
}

/** Terms ended in one go; with thousands on a lease the event loop gets its turn in between. None of them is held meanwhile. */
const ENDED_AT_ONCE = 200;
/** Nor does one go take longer than this, as far as we can tell: listeners of each term run in it too. */
const ENDING_MS = 10;

export class Lease {
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #deadline: Deadline;
  readonly #tenants = new Set<Tenant>();
  /** Begins to keep it; returns how to stop. */
  readonly #keep: (lease: Lease) => () => void;
  #stopKeeping: (() => void) | undefined;
  #watchdog: Timer | undefined;
  /** An attempt failed since the deadline was last moved: the terms were told, and are told when it is moved again. */
  #failing = false;
  /** For good: an answer that comes after this extends nothing, since a term may have answered "no". */
  #over = false;
  /** Why the store says that it is gone, if it does. */
  #lost: string | undefined;

  constructor(clock: Clock, ttlMs: number, deadline: Deadline, keep: (lease: Lease) => () => void) {
    this.#clock = clock;
    this.#ttlMs = ttlMs;
    this.#deadline = deadline;
    this.#keep = keep;
  }

  /** Milliseconds left, by the clocks at this call; 0 when it is over. */
  get remainingMs(): number {
    if (this.#over) return 0;
    const left = this.#deadline.remainingMs();
    if (left > 0) return left;
    this.#over = true;
    return 0;
  }

  /** Why the store says that it is gone; `undefined` if it does not. */
  get lost(): string | undefined {
    return this.#lost;
  }

  /** Monotonic time at which the store may grant it to others: a margin after the deadline. */
  get endsAt(): number {
    return this.#deadline.askedAt + this.#ttlMs;
  }

  /** A copy of the deadline that no renewal moves. */
  frozen(): Deadline {
    return this.#deadline.copy();
  }

  /** Whether a term of another election with the same clock and margin may begin on it. */
  serves(clock: Clock, marginMs: number): boolean {
    return this.#clock === clock && this.#deadline.marginMs === marginMs && this.remainingMs > 0;
  }

  /** A term begins on this lease. The first one starts renewal and watchdog. */
  join(tenant: Tenant): void {
    this.#tenants.add(tenant);
    if (this.#stopKeeping !== undefined) return;
    this.#stopKeeping = this.#keep(this);
    this.#guard();
  }

  /** A term is over, or is not extended any more. After the last one nothing keeps the lease. */
  leave(tenant: Tenant): void {
    this.#tenants.delete(tenant);
    if (this.#tenants.size === 0) this.#stop();
  }

  /** Takes the store's answer. `false` = it extends nothing: the lease is over. */
  accept(answer: Extension | "lost"): boolean {
    // First the old deadline: an answer that comes after it extends nothing.
    if (this.remainingMs <= 0 || this.#tenants.size === 0) return false;
    if (answer === "lost") {
      this.lose();
      return false;
    }
    this.#deadline.extend(answer.asked, this.#ttlMs);
    if (this.#failing) for (const tenant of this.#tenants) tenant.extended();
    this.#failing = false;
    return true;
  }

  /** The store says that the lease is gone: no term on it is held from here on. */
  lose(): void {
    const detail = "the store says that the lease is gone or held by someone else";
    this.#lost ??= detail;
    this.#end((tenant) => tenant.revoked(detail));
  }

  attempted(attempt: Attempt): void {
    if (attempt.error !== undefined) this.#failing = true;
    for (const tenant of this.#tenants) tenant.attempted(attempt);
  }

  /** Sleeps to the deadline, looks at the clock, sleeps again: timers are early, late, and do not know of renewals. */
  #guard(): void {
    const left = this.remainingMs;
    if (left <= 0) this.#end((tenant) => tenant.expired());
    else this.#watchdog = this.#clock.after(left, () => this.#guard());
  }

  #end(each: (tenant: Tenant) => void): void {
    this.#over = true;
    this.#stop();
    let ended = 0;
    const until = this.#clock.now() + ENDING_MS;
    for (const tenant of this.#tenants) {
      if (ended++ === ENDED_AT_ONCE || (ended > 1 && this.#clock.now() > until)) {
        this.#watchdog = this.#clock.after(0, () => this.#end(each));
        return;
      }
      each(tenant); // it leaves
    }
  }

  #stop(): void {
    this.#stopKeeping?.();
    this.#watchdog?.cancel();
  }
}

/** Leases of sessions, shared by all terms on them. */
const shared = new WeakMap<Session, Set<Lease>>();

/** The lease of a hold: its own, renewed by us, or its session's, which other terms may share. */
export function leaseOf(hold: Hold, clock: Clock, timing: Timing, deadline: Deadline): Lease {
  const { session } = hold;
  if (session === undefined)
    return new Lease(clock, hold.ttlMs, deadline, (lease) => renewing(lease, hold, clock, timing));
  const leases = shared.get(session) ?? new Set();
  shared.set(session, leases);
  for (const lease of leases) if (lease.serves(clock, deadline.marginMs)) return lease;
  const lease = new Lease(clock, hold.ttlMs, deadline, (kept) => following(kept, session, leases));
  leases.add(lease);
  return lease;
}

function renewing(lease: Lease, hold: Hold, clock: Clock, timing: Timing): () => void {
  const renewals = new RenewalLoop<Extension | "lost">({
    clock,
    renewMs: timing.renewMs,
    attemptMs: timing.attemptMs,
    leftMs: () => lease.remainingMs,
    ask: (signal) => hold.renew({ signal }),
    answered: (answer, latencyMs) => {
      lease.attempted({ latencyMs });
      return lease.accept(answer) && answer !== "lost" ? answer.asked.now : undefined;
    },
    failed: (error, latencyMs) => {
      lease.attempted({ latencyMs, error });
      return lease.remainingMs > 0;
    },
  });
  renewals.start(hold.asked.now);
  return () => renewals.stop();
}

function following(lease: Lease, session: Session, leases: Set<Lease>): () => void {
  const unfollow = session.follow({
    attempted: (attempt) => {
      lease.attempted(attempt);
      if (attempt.error === undefined) lease.accept(session.extension);
    },
    lost: () => lease.lose(),
  });
  return () => {
    unfollow();
    leases.delete(lease);
  };
}
