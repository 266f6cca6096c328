/** Stands between an election and its backend, and watches in which order leadership is given up. */
import type { Backend, CallOptions, Extension, Hold, ReleaseOptions, Session } from "../../seam/backend.js";
import type { Clock, Reading } from "../../seam/clock.js";
import type { Monitor } from "./monitor.js";

export interface SpyOptions {
  readonly owner: string;
  readonly clock: Clock;
  readonly monitor: Monitor;
  readonly drainMs: number;
  /** How much earlier than its lease a term is over. */
  readonly marginMs: (grantedTtlMs: number) => number;
  /** Told under which name the election campaigns. */
  readonly campaigns?: (candidate: string) => void;
  /** Told of every attempt to give leadership to somebody. */
  readonly hands?: (token: bigint, heir: string) => void;
  /** How long the candidate leaves a vacancy to others; default not at all. */
  readonly standBackMs?: number | undefined;
}

export function spied(backend: Backend, options: SpyOptions): Backend {
  const release = backend.release?.bind(backend);
  const evict = backend.evict?.bind(backend);
  return {
    ...(release === undefined ? {} : { release }),
    ...(evict === undefined ? {} : { evict }),
    name: backend.name,
    guarantees: backend.guarantees,
    timing: backend.timing,
    get records() {
      return backend.records;
    },
    campaign: async (candidacy, call) => {
      options.campaigns?.(candidacy.candidate);
      const { standBackMs } = options;
      const standing =
        standBackMs === undefined ? candidacy : { ...candidacy, standBackMs: () => standBackMs };
      const hold = await backend.campaign(standing, call);
      return hold === null ? null : new SpiedHold(hold, options);
    },
    observe: (election, call) => backend.observe(election, call),
    [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
  };
}

/** Boot time is told in steps of 10 ms. */
const BOOT_SLACK_MS = 20;

class SpiedHold implements Hold {
  readonly token: bigint;
  readonly asked: Reading;
  readonly ttlMs: number;
  readonly revoked: Hold["revoked"];
  readonly #hold: Hold;
  readonly #options: SpyOptions;
  #unfollow: (() => void) | undefined;
  #extendedAt: number;
  #bootAhead: number;

  constructor(hold: Hold, options: SpyOptions) {
    this.token = hold.token;
    this.asked = hold.asked;
    this.ttlMs = hold.ttlMs;
    this.revoked = hold.revoked;
    this.#hold = hold;
    this.#options = options;
    this.#extendedAt = hold.asked.now;
    this.#bootAhead = bootAhead(options.clock);
    this.#follow();
  }

  /** Before core does: what core is told, the monitor knows already. A term that is over is not extended any more. */
  #follow(): void {
    const { session, revoked } = this.#hold;
    if (session === undefined) return;
    const { monitor, owner } = this.#options;
    this.#unfollow = WatchedSession.of(session).add(() => {
      if (revoked?.aborted === true || monitor.recordOf(this.token, owner)?.ended === true)
        return this.#unfollow?.();
      this.#learn(session.extension);
    });
  }

  get session(): Hold["session"] {
    const { session } = this.#hold;
    return session && WatchedSession.of(session);
  }

  abandon(at: number): void {
    this.#unfollow?.();
    this.#hold.abandon?.(at);
  }

  renew(options: CallOptions): Promise<Extension | "lost"> {
    return this.#watched(() => this.#hold.renew(options), options);
  }

  proclaim(value: string, options: CallOptions): Promise<Extension | "lost"> {
    return this.#watched(() => this.#hold.proclaim(value, options), options);
  }

  async #watched(
    extend: () => Promise<Extension | "lost">,
    options: CallOptions,
  ): Promise<Extension | "lost"> {
    const askedAt = this.#options.clock.now();
    try {
      return this.#extended(await extend(), options);
    } catch (error) {
      this.#undecided(error, askedAt);
      throw error;
    }
  }

  /** The store answered, and by its answer the record is another one: where no answer is stale that is a loss. */
  #undecided(error: unknown, askedAt: number): void {
    const { monitor, owner } = this.#options;
    const goneAt = monitor.recordOf(this.token, owner)?.goneAt;
    if (goneAt === undefined || askedAt <= goneAt || !monitor.vouches()) return;
    if (error instanceof Error && error.message.includes("changed under the write"))
      monitor.violate("late-loss", `${owner} was not told that the store has forgotten ${this.token}`);
  }

  release(options: ReleaseOptions): Promise<void> {
    this.#checkOrder();
    this.#unfollow?.();
    if (options.heir !== undefined) this.#options.hands?.(this.token, options.heir.candidate);
    return this.#hold.release(options);
  }

  #extended(answer: Extension | "lost", { signal }: CallOptions): Extension | "lost" {
    // What nobody waits for any more extends nothing.
    if (answer === "lost" || signal.aborted) return answer;
    this.#learn(answer);
    return answer;
  }

  #learn(answer: Extension): void {
    const { monitor, owner, clock } = this.#options;
    const record = monitor.recordOf(this.token, owner);
    if (record !== undefined)
      monitor.extended(record, answer.asked.now, answer.asked.now + this.ttlMs - this.#margin - clock.now());
    // And neither does what comes after the deadline.
    if (!this.#over()) {
      this.#extendedAt = Math.max(this.#extendedAt, answer.asked.now);
      this.#bootAhead = bootAhead(clock);
    }
  }

  /** A sleep of the machine counts, although monotonic time stood still. */
  #now(): number {
    const { clock } = this.#options;
    return clock.now() + bootAhead(clock) - this.#bootAhead + BOOT_SLACK_MS;
  }

  /** The deadline has passed, or the machine slept: that ends a term whatever was left of it. */
  #over(): boolean {
    if (bootAhead(this.#options.clock) - this.#bootAhead + BOOT_SLACK_MS > this.#margin / 4) return true;
    return this.#now() >= this.#extendedAt + this.ttlMs - this.#margin;
  }

  get #margin(): number {
    return this.#options.marginMs(this.ttlMs);
  }

  /** Work that still runs forbids it, unless it had its time to stop, or leadership ran out anyway. */
  #checkOrder(): void {
    const { owner, monitor, drainMs } = this.#options;
    const record = monitor.recordOf(this.token, owner);
    monitor.note(`${owner} releases ${this.token}`);
    if (record === undefined || record.work !== "running") return;
    const drained = record.abortedAt !== undefined && this.#now() >= record.abortedAt + drainMs;
    if (!drained && !this.#over())
      monitor.violate("stop-order", `${owner} gave ${this.token} back while its work still ran`);
  }
}

/** The same session: who follows it is core alone, for a session behaves otherwise when nobody does. */
class WatchedSession implements Session {
  static readonly #all = new WeakMap<Session, WatchedSession>();
  readonly #session: Session;
  readonly #watchers = new Set<() => void>();

  static of(session: Session): WatchedSession {
    const watched = this.#all.get(session) ?? new WatchedSession(session);
    this.#all.set(session, watched);
    return watched;
  }

  constructor(session: Session) {
    this.#session = session;
  }

  get extension(): Extension {
    return this.#session.extension;
  }

  /** Called whenever core is told of an extension. */
  add(extended: () => void): () => void {
    this.#watchers.add(extended);
    return () => this.#watchers.delete(extended);
  }

  follow(follower: Parameters<Session["follow"]>[0]): () => void {
    return this.#session.follow({
      attempted: (attempt) => {
        if (attempt.error === undefined) for (const extended of [...this.#watchers]) extended();
        follower.attempted(attempt);
      },
      lost: () => follower.lost(),
    });
  }
}

function bootAhead(clock: Clock): number {
  return clock.boot() - clock.now();
}
