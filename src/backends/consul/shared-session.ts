/**
 * One Consul session under many contenders: renewed here, once for all of them,
 * while anybody leads or waits on it. Its time counts from the question and lasts
 * one ttl: Consul itself waits twice as long, but a server that was deposed may
 * have answered the question.
 */
import type { Extension, Session, SessionFollower } from "../../seam/backend.js";
import type { Clock, Reading } from "../../seam/clock.js";
import { readClocks } from "../../kit/clock.js";
import { ConclaveError, isConclaveError, isRetriable } from "../../kit/errors.js";
import { RenewalLoop } from "../../kit/renewal.js";
import type { Stop } from "../../kit/stop.js";
import { SessionFollowers } from "../../session/followers.js";
import { bounded, limited, sharedController } from "../../kit/wait.js";
import type { CallLimits, ConsulClient } from "./client.js";
import { Contender, type ContenderRequest } from "./contender.js";
import { Strays } from "./strays.js";
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
  readonly retired: (session: SharedSession) => void;
}

export class SharedSession implements Session {
  readonly id: string;
  readonly ttlMs: number;
  readonly lockDelayMs: number;
  readonly #client: ConsulClient;
  readonly #clock: Clock;
  readonly #watches: Watches;
  readonly #retired: (session: SharedSession) => void;
  readonly #closing = sharedController();
  readonly #contenders = new Set<Contender>();
  readonly #strays: Strays;
  /** One for each election: to Consul a session is one holder. Strays keep theirs until they are swept. */
  readonly #elections = new Map<string, Contender>();
  /** Elections with a request that may still arrive: another one by this session could be ended by it. */
  readonly #spent = new Set<string>();
  readonly #renewals: RenewalLoop<Extension | undefined>;
  readonly #followers: SessionFollowers<Contender>;
  #extension: Extension;
  #renewing: Promise<Extension> | undefined;
  #ended: "lost" | "retired" | undefined;
  #closed: Promise<void> = Promise.resolve();

  constructor(options: SharedSessionOptions) {
    const { client, clock, ttlMs, asked } = options;
    this.#client = client;
    this.#clock = clock;
    this.#watches = options.watches;
    this.#retired = options.retired;
    this.id = options.id;
    this.ttlMs = ttlMs;
    this.lockDelayMs = options.lockDelayMs;
    this.#extension = { asked };
    const limits = { signal: this.#closing.signal, limitMs: ttlMs / 4 };
    this.#strays = new Strays({ clock, limits, swept: (contender) => this.forget(contender) });
    this.#followers = new SessionFollowers({
      ...{ clock, ttlMs, candidates: () => this.#contenders },
      expired: (contender) => this.#abandon(contender),
    });
    this.#renewals = new RenewalLoop({
      ...{ clock, renewMs: ttlMs / 3, attemptMs: ttlMs / 4, leftMs: () => Infinity },
      ask: () => this.#due(),
      answered: (extension) => extension?.asked.now,
      failed: () => !this.ended,
    });
    this.#renewals.start(asked.now);
  }

  get extension(): Extension {
    return this.#extension;
  }

  get closing(): Stop {
    return this.#closing.signal;
  }

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  get ageMs(): number {
    return this.#clock.now() - this.#extension.asked.now;
  }

  /** Whether its extension is young enough to build on. */
  get isFresh(): boolean {
    return this.ageMs < this.ttlMs / 2;
  }

  /** Whether a candidate of this election may use it. */
  serves(election: string): boolean {
    if (this.ended || this.#elections.has(election) || this.#spent.has(election)) return false;
    return this.#contenders.size > 0 || this.isFresh;
  }

  isCurrent(contender: Contender): boolean {
    return this.#elections.get(contender.election) === contender;
  }

  /** Whether somebody of ours stands or leads by it in this election, or has to be released. */
  hasContender(election: string): boolean {
    return this.#elections.has(election);
  }

  enter(request: ContenderRequest): Contender {
    const contender = new Contender(this.#client, this, request);
    this.#elections.set(request.election, contender);
    this.#contenders.add(contender);
    return contender;
  }

  async fresh(): Promise<Extension> {
    return this.isFresh ? this.#extension : this.renew();
  }

  /** A newer extension for this hold, after which its lock was read. */
  async keep(contender: Contender, limits: CallLimits): Promise<Extension> {
    for (let attempt = 0; attempt < 2; attempt++) {
      if (contender.lost !== undefined) throw contender.lost;
      const extension = await this.renew();
      // One that had begun earlier may be the one that was handed out already.
      if (extension.asked.now <= contender.handedOut) continue;
      await contender.verify(limits);
      return extension;
    }
    throw new ConclaveError("unavailable", "the session was not renewed anew; asking again");
  }

  follow(follower: SessionFollower): () => void {
    return this.#followers.follow(follower);
  }

  /** A hold was given out. */
  handedOut(contender: Contender): void {
    contender.state = "held";
    contender.handedOut = this.#extension.asked.now;
    contender.watch(this.#watches, contender.modifyIndex);
    this.#followers.handedOut();
  }

  /** One renewal now, shared with everybody who asks while it is under way. */
  renew(): Promise<Extension> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  /** Releases the lock. If that fails it is tried again as long as the session lives. */
  async vacate(contender: Contender, signal: Stop, limitMs: number): Promise<void> {
    if (contender.state === "left" && !this.#strays.has(contender)) return;
    if (contender.unanswered) this.#spent.add(contender.election);
    try {
      await contender.vacate({ signal, limitMs });
    } catch (error) {
      this.#abandon(contender);
      throw error;
    }
    // The request for the lock itself may still be on its way.
    if (contender.unanswered && contender.lost === undefined) this.#abandon(contender);
    else this.#leave(contender);
  }

  /** The store refused a write with "no such session". */
  notFound(): void {
    this.#lose("its session is gone");
  }

  /** The store was restored: it may have locks of this session that were released since. None of them is kept. */
  giveUp(limitMs: number): Promise<void> {
    if (this.ended) return this.#closed;
    this.#lose("Consul was restored from a snapshot");
    const limits = { signal: new AbortController().signal, limitMs };
    this.#closed = this.#client.destroySession(this.id, limits).catch(() => {}); // it runs out by itself
    return this.#closed;
  }

  /** Ends it: locks are released first, since Consul keeps those of a destroyed session closed for a while. */
  close(limitMs: number): Promise<void> {
    if (this.#ended !== undefined) return this.#closed;
    const led = this.ageMs < this.ttlMs && [...this.#contenders].some(({ state }) => state === "held");
    const mayLead = led || this.#strays.waiting;
    const strays = this.#strays.size > 0 && !mayLead ? this.#strays.sweep() : Promise.resolve();
    // Somebody may still believe that it leads: only the delay keeps others away until its time is over.
    const destroy = !mayLead || this.lockDelayMs >= this.ttlMs;
    const never = new AbortController().signal;
    this.#closed = bounded(this.#clock, limitMs, never, "ending the session", async (signal) => {
      await strays;
      this.#end("retired");
      if (destroy && !signal.aborted) await this.#client.destroySession(this.id, { signal, limitMs });
    })
      .catch(() => {}) // it runs out by itself
      .finally(() => {
        this.#end("retired");
        this.#retired(this);
      });
    return this.#closed;
  }

  async #renew(): Promise<Extension> {
    if (this.ended) throw new ConclaveError("unavailable", "the Consul session has ended");
    const startedAt = this.#clock.now();
    // Short, so that a connection that has gone silent is found in time for another try.
    const limitMs = Math.min(LONGEST_RENEWAL_MS, this.ttlMs / 6);
    try {
      const extension = await limited(
        ...([this.#clock, this.ttlMs / 4, this.#closing.signal, "renewing the Consul session"] as const),
        (signal) => this.#extend({ signal, limitMs }),
      );
      this.#extension = extension;
      this.#renewals.start(extension.asked.now);
      this.#followers.attempted({ latencyMs: this.#clock.now() - startedAt });
      return extension;
    } catch (error) {
      // What waits for news waits on the same path.
      if (isConclaveError(error) && error.code === "timeout") this.#client.distrust();
      this.#followers.attempted({ latencyMs: this.#clock.now() - startedAt, error });
      // Nobody leads by it any more, and nobody may renew it.
      if (!isRetriable(error) && this.ageMs > this.ttlMs) void this.close(this.ttlMs / 4);
      throw error;
    }
  }

  async #extend(limits: CallLimits): Promise<Extension> {
    const asked = readClocks(this.#clock);
    if (!(await this.#client.renewSession(this.id, limits))) {
      // A server that has just begun to lead may not have read of it yet.
      if (await this.#client.hasSession(this.id, limits))
        throw new ConclaveError("unavailable", "Consul denied the session but still has it; asking again");
      this.#lose("its session is gone");
      throw new ConclaveError("unavailable", "Consul no longer knows the session");
    }
    await this.#verifyAll(limits);
    return { asked };
  }

  /** An extension counts for all who hold on this session: each must still have its lock. */
  async #verifyAll(limits: CallLimits): Promise<void> {
    const held = [...this.#contenders].filter(({ state }) => state === "held");
    for (let i = 0; i < held.length; i += LOCKS_AT_ONCE) {
      const some = held.slice(i, i + LOCKS_AT_ONCE);
      if (await this.#client.holds(some, limits)) continue;
      await Promise.all(some.map((contender) => unlessLost(contender, contender.verify(limits))));
    }
  }

  /** What is asked when a renewal is due; `undefined`: the session serves nobody and is given up. */
  async #due(): Promise<Extension | undefined> {
    if (this.#contenders.size > 0 || this.#strays.size > 0) return this.renew();
    await this.close(this.ttlMs / 4);
    return undefined;
  }

  /** The term is over, and is not released: its lock is, when its lease would have ended. */
  abandon(contender: Contender, at: number): void {
    if (contender.state === "held") this.#abandon(contender, at);
  }

  forget(contender: Contender): void {
    this.#contenders.delete(contender);
    this.#strays.delete(contender);
    if (this.#elections.get(contender.election) === contender) this.#elections.delete(contender.election);
  }

  #abandon(contender: Contender, from?: number): void {
    if (contender.state === "left") return;
    contender.leave();
    this.#contenders.delete(contender);
    this.#strays.add(contender, from);
  }

  #leave(contender: Contender): void {
    contender.leave();
    this.forget(contender);
  }

  /** First those who follow: none of their terms is held any more. */
  #lose(why: string): void {
    this.#end("lost");
    this.#retired(this);
    this.#followers.lost();
    for (const contender of [...this.#contenders]) contender.lose(why);
  }

  #end(how: "lost" | "retired"): void {
    if (this.#ended !== undefined) return;
    this.#ended = how;
    this.#renewals.stop();
    this.#followers.end();
    this.#strays.close();
    this.#closing.abort(new ConclaveError("unavailable", "the Consul session has ended"));
  }
}

/** Whoever has lost its lock has heard of it; the others go on. */
async function unlessLost(contender: Contender, verifying: Promise<void>): Promise<void> {
  try {
    await verifying;
  } catch (error) {
    if (contender.lost === undefined) throw error;
  }
}
