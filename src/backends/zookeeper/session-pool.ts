/** The sessions of one backend: one for each ttl, shared by all its elections. */
import { readClocks } from "../../kit/clock.js";
import { bounded, sharedController, untilAborted } from "../../kit/wait.js";
import type { Clock } from "../../seam/clock.js";
import type { CallLimits, ZooKeeperClient } from "./client.js";
import { closedBackend } from "./closed.js";
import { SharedSession } from "./shared-session.js";

export interface SessionPoolOptions {
  readonly client: ZooKeeperClient;
  readonly clock: Clock;
  readonly lagMs: number;
  /** For those that lead nothing: observers, records. */
  readonly usualTtlMs: number;
  /** The server granted another timeout than was asked for. */
  clamped(askedMs: number, grantedMs: number): void;
}

export class SessionPool {
  readonly #options: SessionPoolOptions;
  readonly #sessions = new Map<number, Set<SharedSession>>();
  readonly #opening = new Map<number, Promise<SharedSession>>();
  readonly #closing = sharedController();

  constructor(options: SessionPoolOptions) {
    this.#options = options;
  }

  async session(ttlMs: number, limits: CallLimits): Promise<SharedSession> {
    for (;;) {
      for (const session of this.#sessions.get(ttlMs) ?? []) if (session.serves) return session;
      await untilAborted(limits.signal, this.#open(ttlMs, limits.limitMs));
    }
  }

  /** Any session, for reading and for records. */
  async any(limits: CallLimits): Promise<SharedSession> {
    for (const set of this.#sessions.values()) for (const session of set) if (!session.ended) return session;
    return this.session(this.#options.usualTtlMs, limits);
  }

  async close(limitMs: number): Promise<void> {
    this.#closing.abort(closedBackend());
    const all = [...this.#sessions.values()].flatMap((set) => [...set]);
    await Promise.allSettled(all.map((session) => session.close(limitMs)));
    await Promise.allSettled(this.#opening.values());
  }

  /** One request, however many candidates wait for it. */
  #open(ttlMs: number, limitMs: number): Promise<SharedSession> {
    const opening =
      this.#opening.get(ttlMs) ??
      this.#ask(ttlMs, limitMs).finally(() => {
        this.#opening.delete(ttlMs);
      });
    this.#opening.set(ttlMs, opening);
    return opening;
  }

  async #ask(ttlMs: number, limitMs: number): Promise<SharedSession> {
    const { client, clock, lagMs } = this.#options;
    const { signal } = this.#closing;
    const asked = readClocks(clock);
    const session = await bounded(clock, limitMs, signal, "opening a ZooKeeper session", (stop) =>
      client.openSession(ttlMs, { signal: stop, limitMs }),
    );
    if (signal.aborted) {
      session.abandon();
      throw signal.reason;
    }
    if (session.timeoutMs !== Math.ceil(ttlMs)) this.#options.clamped(ttlMs, session.timeoutMs);
    const set = this.#sessions.get(ttlMs) ?? new Set();
    this.#sessions.set(ttlMs, set);
    const shared: SharedSession = new SharedSession({
      ...{ session, clock, lagMs, asked },
      retired: () => set.delete(shared),
    });
    set.add(shared);
    return shared;
  }
}
