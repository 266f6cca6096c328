/**
 * The interface between the law of leadership and the stores. The law uses a
 * store only through these types; a store only implements them.
 *
 * Six promises every backend makes (the conformance suite proves them):
 *
 * 1. A grant is atomic against all other grants of the same election.
 * 2. `asked` was read before the request the store granted was sent.
 * 3. `"lost"` is answered only when it is certain. Not knowing is a throw.
 * 4. Tokens strictly rise; what could reset them is stated in the docs.
 * 5. `release` never harms a successor, however late it arrives.
 * 6. Every call ends soon after its signal aborts.
 *
 * A backend never calls the law, never retries on its own account and never
 * decides how long a leadership lasts: it says when it asked and what the
 * store answered.
 */
import type { Reading } from "./clock.js";
import type { Stop } from "./stop.js";
import type { RecordStore } from "./table.js";

/**
 * What can be wished about who leads next: by the leader that gives its leadership
 * back (an {@link Heir}), or by a candidate that leaves a vacancy to others
 * (`standBackMs`). Exclusion and tokens never depend on either.
 */
export type Wish = "heir" | "stand-back";

/** What a backend can and cannot promise, in words the docs are generated from. */
export interface Guarantees {
  /** How strongly two grants exclude each other. */
  readonly exclusion: "linearizable" | "single-primary" | "best-effort";
  /** Whose clock ends a lease that is not renewed. */
  readonly expiry: "observer" | "store" | "connection" | "quorum";
  /** Where the fencing token comes from. */
  readonly token: "record" | "revision" | "term" | "unfenced";
  /** Whether waiting candidates are served in order. */
  readonly succession: "fifo" | "unordered";
  /** Which wishes about who leads next the backend follows; it ignores the others. Default: all of them. */
  readonly honours?: readonly Wish[] | undefined;
  /** Smallest lease the store can keep, and the step it rounds up to. */
  readonly ttl: { readonly minMs: number; readonly stepMs: number };
}

/** One candidate's wish to lead one election. */
export interface Candidacy {
  readonly election: string;
  /** Unique per start: never reused, so a record that names it is ours for certain. */
  readonly candidate: string;
  /** Published to observers with the leadership. */
  readonly value: string;
  readonly ttlMs: number;
  /**
   * How long after it asked for its last extension the candidate stops acting by
   * itself; at most `ttlMs`, which it is if absent. Stores that keep it in the
   * record let others be sure of that by their own clock.
   */
  readonly stopMs?: number | undefined;
  /** Longest sleep between two looks at the store while waiting (under a watch, if there is one). */
  readonly retryMs: number;
  /** Longest a single request may take. */
  readonly attemptMs: number;
  /**
   * How long this candidate leaves a vacancy to others (priority), asked when it
   * sees one. Absent: not at all. A hint: exclusion never depends on it, and a
   * backend may ignore it.
   */
  readonly standBackMs?: (() => number) | undefined;
}

/** Who shall lead next, named by the leader that gives its leadership back. */
export interface Heir {
  /** A candidate's full id, or its readable part (the id without the random suffix). */
  readonly candidate: string;
  /** How long others leave the vacancy to it, each by its own clock from when it sees the vacancy. */
  readonly forMs: number;
}

/** Who leads, as the store tells it. */
export interface Leader {
  readonly candidate: string;
  readonly token: bigint;
  readonly value: string;
  /**
   * When the leadership began, by the *leader's* wall clock, in epoch
   * milliseconds; `undefined` where the store does not record it. For people to
   * read; never compare it with a local clock to decide anything.
   */
  readonly since?: number | undefined;
}

/** Every call carries a signal, and ends soon after it aborts. */
export interface CallOptions {
  readonly signal: AbortSignal;
}

/** How a lease is given back. */
export interface ReleaseOptions extends CallOptions {
  /**
   * Who shall lead next. Named in the releasing write itself, where the store's
   * records have room for it; a backend that cannot name an heir ignores it. A
   * wish: exclusion and tokens never depend on it.
   */
  readonly heir?: Heir | undefined;
}

/** How a backend campaigns. */
export interface CampaignOptions extends CallOptions {
  /** `false`: one attempt, `null` if someone else leads. `true`: wait to be elected. */
  readonly wait: boolean;
  /**
   * To be called with every token that the campaign meets in the store: of the
   * leader it waits for, of candidates ahead of it, of a key of its own; or, where
   * it is known, with the lowest token that the store can grant after them. A
   * grant with a lower token than any of them is then refused: the store has lost
   * its memory. Calling it again with a known token costs nothing.
   */
  readonly seen?: ((token: bigint) => void) | undefined;
}

/** How a backend follows who leads. */
export interface ObserveOptions extends CallOptions {
  /** Longest silence before the store is asked again. */
  readonly pollMs: number;
  /** Longest a single request may take. */
  readonly attemptMs: number;
}

/**
 * The store extended the lease. All clocks are read just before the request is
 * sent (`readClocks`), also where one request extends the leases of many: if a
 * machine sleeps, the monotonic clock stops, and only readings of the same
 * moment show how much of the lease has passed.
 */
export interface Extension {
  readonly asked: Reading;
}

/**
 * A lease that the backend keeps alive itself, for every hold on it: one
 * connection, one keep-alive, any number of elections.
 */
export interface Session {
  /** The newest extension. It counts for every hold on the session that is not revoked. */
  readonly extension: Extension;
  /** Tells of every attempt to extend the session, and of its end. Returns the way to stop. */
  follow(follower: SessionFollower): () => void;
}

/** Is notified about a {@link Session}. Must not throw. */
export interface SessionFollower {
  /** An attempt succeeded, and {@link Session.extension} is newer; or it failed with this error. */
  attempted(attempt: { readonly latencyMs: number; readonly error?: unknown }): void;
  /** The store says that the session is gone, and every hold on it. */
  lost(): void;
}

/** A granted lease, in the hands of one term. */
export interface Hold {
  readonly token: bigint;
  /** The clocks just before the request that was granted was sent. */
  readonly asked: Reading;
  /** What the store really granted, where it may differ from what was asked. */
  readonly ttlMs: number;
  /** Aborts when the store says the lease is gone. A hint: may come late or never. */
  readonly revoked?: Stop | undefined;
  /**
   * The session of the hold, where the backend keeps one. Then the backend
   * alone renews; the law follows, and calls {@link renew} only to confirm
   * a grant. Holds on one session give the same object. While nobody follows the
   * session, a hold on it lives by {@link renew} alone.
   */
  readonly session?: Session | undefined;
  /**
   * The term on this hold is over and nobody will release it. The session lives
   * on, so the backend takes away what it wrote for this hold, but not before
   * the monotonic time `at`, when the lease that the term counted on ends.
   * Must not throw.
   */
  abandon?(at: number): void;
  /** Extends the lease. Throws = unknown. */
  renew(options: CallOptions): Promise<Extension | "lost">;
  /** Publishes a new value and extends the lease. Throws = unknown. */
  proclaim(value: string, options: CallOptions): Promise<Extension | "lost">;
  /** Gives the lease back. Idempotent, and harmless if it is long gone. Throws = unknown. */
  release(options: ReleaseOptions): Promise<void>;
}

/** Timings a store's users are used to; an election's own options override them. */
export interface TimingDefaults {
  readonly ttlMs?: number;
  readonly renewMs?: number;
  readonly renewDeadlineMs?: number;
  readonly retryMs?: number;
}

/** A leadership as another process knows it: enough to end it, and no other. */
export interface Claim {
  readonly election: string;
  readonly candidate: string;
  readonly token: bigint;
}

/** A leadership that can no longer be renewed. */
export interface Eviction {
  /** Longest time until the lease may be granted again, from the moment of the answer. */
  readonly waitMs: number;
}

/** Elections that a store knows of. */
export interface Listing {
  /** Sorted. Whether somebody leads them is another question. */
  readonly names: readonly string[];
  /** `false`: there are more than can be listed. */
  readonly complete: boolean;
}

/**
 * What became of an election that is to be forgotten. `removed`: the store has
 * nothing of it any more. `kept`: a vacated record stays, since without it tokens
 * could begin anew. `in-use`: somebody leads it, campaigns in it as far as the
 * store shows, or has just written; nothing was removed.
 */
export type Forgotten = "removed" | "kept" | "in-use";

/** A store for elections. Implemented by each store, used by the law alone. */
export interface Backend extends AsyncDisposable {
  readonly name: string;
  readonly guarantees: Guarantees;
  readonly timing?: TimingDefaults | undefined;
  /**
   * Campaigns. Resolves with a hold that was confirmed after the last
   * wait, or with `null` if `wait` is false and someone else leads. A cancelled
   * campaign leaves nothing behind that could win later.
   */
  campaign(candidacy: Candidacy, options: CampaignOptions): Promise<Hold | null>;
  /**
   * Follows who leads: the present leader first, then every change it gets to
   * see. It may skip leaders, yields `null` while nobody leads, and throws when
   * the store cannot be asked. It does not show an older leader after a newer
   * one, in a later call neither: a lagging read is left out. The one exception
   * is a store that has certainly lost its data; the election reports that.
   */
  observe(election: string, options: ObserveOptions): AsyncIterable<Leader | null>;
  /** Small durable records by compare-and-swap, bound to no lease (cron, fences); absent where the store has none. */
  readonly records?: RecordStore | undefined;
  /**
   * Gives back a leadership in the name of a process that is certainly dead:
   * only if the store still names this candidate with this very token, so that
   * a successor is never harmed. `"not-held"` = it does not. Throws = unknown.
   * While the claimant may still act, this makes two leaders: ask whoever calls
   * it to be sure.
   */
  release?(claim: Claim, options: CallOptions): Promise<"released" | "not-held">;
  /**
   * Bars a leadership from being renewed, though its process may be alive (and
   * hang): the leader learns of it at its next renewal, if it still runs. Others
   * are granted the lease only when it has stopped by its own clock for certain.
   * Guarded like {@link release}. Absent where the store cannot keep successors
   * waiting for a lease that nobody renews. Throws = unknown.
   */
  evict?(claim: Claim, options: CallOptions): Promise<Eviction | "not-held">;
  /**
   * Which elections there are, as far as the store's keys show it; absent where
   * they do not. For people and pages: an election may be missing that has just
   * begun, or listed although it has had no candidate for long.
   */
  list?(options: CallOptions): Promise<Listing>;
  /**
   * Removes what an abandoned election left, leases and queues, not its
   * {@link records}. Never harms a leader or a candidate, and never lets a later
   * token be lower than an earlier one. Absent where nothing is kept.
   */
  forget?(election: string, options: CallOptions): Promise<Forgotten>;
  /**
   * Tells of settings of the store under which leaderships can be lost or
   * granted twice, each once, to the first listener, also those found before.
   * Elections write them to their log.
   */
  onWarning?(listener: (message: string) => void): void;
}

/** A backend that also keeps records. */
export interface BackendWithRecords extends Backend {
  readonly records: RecordStore;
}
