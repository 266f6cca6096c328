/**
 * One etcd lease under many seats: a session that is renewed here, once for all
 * of them, while anybody leads or waits on it.
 */
import type { Clock, Reading } from "../../seam/clock.js";
import type { Extension, Session, SessionFollower } from "../../seam/backend.js";
import type { Stop } from "../../kit/stop.js";
import { ConclaveError, describe, isRetriable } from "../../kit/errors.js";
import { RenewalLoop } from "../../kit/renewal.js";
import { bounded } from "../../kit/wait.js";
import type { CallLimits, EtcdClient } from "./client.js";
import { renewLease } from "./renew-lease.js";
import { Seat, type SeatRequest } from "./seat.js";
import { Strays } from "./strays.js";
import { Turns } from "./turns.js";
import { Unfollowed } from "./unfollowed.js";

/** With more seats, terms learn of the end of their lease as followers of it, in slices. */
const TOLD_AT_ONCE = 200;

export interface SharedLeaseOptions {
  readonly client: EtcdClient;
  readonly clock: Clock;
  readonly id: bigint;
  readonly ttlMs: number;
  readonly asked: Reading;
  /** Called when nothing of it is under way any more. */
  readonly retired: (lease: SharedLease) => void;
}

export class SharedLease implements Session {
  readonly id: bigint;
  readonly ttlMs: number;
  /** Whose turn it is, for all that wait on this lease. */
  readonly turns: Turns;
  readonly #client: EtcdClient;
  readonly #clock: Clock;
  readonly #retired: (lease: SharedLease) => void;
  readonly #closing = new AbortController();
  readonly #seats = new Set<Seat>();
  readonly #strays: Strays;
  /** One seat for each election: the lease is part of the key. Strays keep theirs until they are swept. */
  readonly #elections = new Map<string, Seat>();
  #extension: Extension;
  #renewing: Promise<Extension> | undefined;
  readonly #renewals: RenewalLoop<Extension | undefined>;
  readonly #followers = new Set<SessionFollower>();
  readonly #unfollowed: Unfollowed;
  #rounds = 0;
  /** The highest revision that the cluster answered with. */
  #revision = 0n;
  /** Some key this candidate may read, for renewals before any seat is taken. */
  #anyKey = "";
  #ended: "lost" | "retired" | undefined;
  #closed: Promise<void> = Promise.resolve();

  constructor(options: SharedLeaseOptions) {
    this.#client = options.client;
    this.#clock = options.clock;
    this.#strays = new Strays({
      ...{ client: options.client, clock: options.clock },
      limits: { signal: this.#closing.signal, limitMs: options.ttlMs / 4 },
      swept: (seat) => this.forget(seat),
    });
    this.#unfollowed = new Unfollowed({
      ...{ clock: options.clock, ttlMs: options.ttlMs },
      seats: () => this.#seats,
      expired: (seat) => this.#abandon(seat),
    });
    this.turns = new Turns(options.client, options.clock);
    this.#retired = options.retired;
    this.id = options.id;
    this.ttlMs = options.ttlMs;
    this.#extension = { asked: options.asked };
    this.#renewals = new RenewalLoop({
      clock: options.clock,
      renewMs: options.ttlMs / 3,
      attemptMs: options.ttlMs / 4,
      leftMs: () => Infinity,
      ask: () => this.#due(),
      answered: (extension) => extension?.asked.now,
      failed: () => !this.ended,
    });
    this.#renewals.start(options.asked.now);
  }

  get extension(): Extension {
    return this.#extension;
  }

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  get ageMs(): number {
    return this.#clock.now() - this.#extension.asked.now;
  }

  /** Whether a candidate of this election may use it: a key can be had only once. */
  serves(election: string): boolean {
    if (this.ended || this.#elections.has(election)) return false;
    return this.#seats.size > 0 || this.isFresh;
  }

  sit(key: string, request: SeatRequest): Seat {
    const seat = new Seat(this.#client, this, key, request);
    this.#anyKey = key;
    this.#elections.set(request.election, seat);
    this.#seats.add(seat);
    return seat;
  }

  /** Our own candidate with this token, if it is one of ours. */
  candidateOf(election: string, token: bigint): string | undefined {
    const seat = this.#elections.get(election);
    return seat?.token === token ? seat.candidate : undefined;
  }

  /** Whether its extension is young enough to build on. */
  get isFresh(): boolean {
    return this.ageMs < this.ttlMs / 2;
  }

  async fresh(): Promise<Extension> {
    return this.isFresh ? this.#extension : this.renew();
  }

  /** A newer extension of this seat, by a renewal that read its key: one that began earlier did not. */
  async keep(seat: Seat): Promise<Extension> {
    for (let attempt = 0; attempt <= 2; attempt++) {
      if (seat.lost !== undefined) throw seat.lost;
      if (seat.extension !== undefined && seat.extension.asked.now > seat.handedOut) return seat.extension;
      if (attempt < 2) await this.renew();
    }
    throw new ConclaveError(
      "unavailable",
      `the key of election "${seat.election}" was not read in this renewal; asking again`,
    );
  }

  follow(follower: SessionFollower): () => void {
    this.#followers.add(follower);
    this.#unfollowed.stop();
    return () => {
      this.#followers.delete(follower);
      this.#watchUnfollowed();
    };
  }

  /** A hold was given out on this seat. */
  handedOut(seat: Seat): void {
    seat.state = "held";
    seat.handedOut = this.#extension.asked.now;
    this.#watchUnfollowed();
  }

  /** One renewal now, shared with everybody who asks while it is under way. */
  renew(): Promise<Extension> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  /** Takes the seat's key out of the store. If that fails it is tried again as long as the lease lives. */
  async vacate(seat: Seat, signal: Stop, limitMs: number): Promise<void> {
    if (seat.state === "left" && !this.#strays.has(seat)) return;
    try {
      await seat.vacate({ signal, limitMs });
    } catch (error) {
      this.#abandon(seat);
      throw error;
    }
    // With the token unknown, the put itself may still be on its way.
    if (seat.sent && seat.token === undefined && seat.lost === undefined) this.#abandon(seat);
    else this.#leave(seat);
  }

  /** The store answered a write with "no such lease". */
  notFound(): void {
    this.#lose("its lease is gone");
  }

  /** Ends it. Revoked, so that nothing is left, unless somebody may still think that it leads. */
  close(limitMs: number): Promise<void> {
    if (this.#ended !== undefined) return this.#closed;
    const now = this.#clock.now();
    const held =
      now < this.#extension.asked.now + this.ttlMs && [...this.#seats].some((seat) => seat.state === "held");
    const inOffice = held || this.#strays.waiting;
    this.#end("retired");
    this.#tellLost("its lease was given up");
    if (!inOffice) this.#closed = this.#revoke(limitMs).finally(() => this.#retired(this));
    else this.#retired(this);
    return this.#closed;
  }

  async #revoke(limitMs: number): Promise<void> {
    const never = new AbortController().signal;
    await this.#client.leaseRevoke(this.id, { signal: never, limitMs }).catch(() => {}); // it runs out by itself
  }

  async #renew(): Promise<Extension> {
    const startedAt = this.#clock.now();
    const { signal } = this.#closing;
    // Shorter than the whole: a connection that has gone silent is found in time for another try elsewhere.
    const limitMs = this.ttlMs / 6;
    try {
      const extension = await bounded(
        this.#clock,
        this.ttlMs / 4,
        signal,
        "renewing the etcd lease",
        (stop) => this.#extend({ signal: stop, limitMs, urgent: true }),
      );
      this.#extension = extension;
      this.#renewals.start(extension.asked.now);
      this.#tell({ latencyMs: this.#clock.now() - startedAt });
      void this.#strays.sweep();
      return extension;
    } catch (error) {
      this.#tell({ latencyMs: this.#clock.now() - startedAt, error });
      // Nobody leads by it any more, and nobody may look: kept alive it would bar those who may.
      if (!isRetriable(error) && this.ageMs > this.ttlMs) void this.close(this.ttlMs / 4);
      throw error;
    }
  }

  #tell(attempt: { readonly latencyMs: number; readonly error?: unknown }): void {
    if (this.ended) return;
    for (const follower of this.#followers) follower.attempted(attempt);
  }

  async #extend(limits: CallLimits): Promise<Extension> {
    const known = this.#revision;
    const renewal = await renewLease(this.#client, this.#clock, {
      ...{ lease: this.id, round: this.#rounds++, anyKey: this.#anyKey, limits },
      // Read after the keep-alive: seats that came meanwhile are among them.
      seats: () => [...this.#seats],
      denied: (seat, error) => this.#deny(seat, error),
    });
    if (renewal.revision < known) throw this.#wentBack(known, renewal.revision);
    this.#revision = renewal.revision;
    if (renewal.extension !== undefined) return renewal.extension;
    this.#lose("its lease is gone");
    throw new ConclaveError("unavailable", "etcd no longer knows the lease");
  }

  /** Restored from a backup, the store may have keys of this lease that were given back long ago: it is not kept. */
  #wentBack(known: bigint, revision: bigint): ConclaveError {
    this.#end("lost");
    this.#tellLost("etcd was restored from a backup");
    this.#closed = this.#revoke(this.ttlMs / 4).finally(() => this.#retired(this));
    return new ConclaveError(
      "unavailable",
      `etcd's revision went back from ${known} to ${revision}: it was wiped or restored; its lease is given up`,
    );
  }

  /** What is asked when a renewal is due; `undefined`: the lease serves nobody and is given up. */
  async #due(): Promise<Extension | undefined> {
    if (this.#seats.size > 0 || this.#strays.waiting) return this.renew();
    await this.close(this.ttlMs / 4); // strays end with it
    return undefined;
  }

  /** A refusal for this seat alone: the others, and those who lead in them, must not pay for it. */
  #deny(seat: Seat, error: unknown): void {
    if (seat.state !== "held") return seat.refuse(error);
    // Once may be a server that has not heard of our role yet: the renewal does not count, and is tried again.
    if (++seat.denials < 2) throw new ConclaveError("unavailable", describe(error));
    seat.deny();
    this.#abandon(seat);
  }

  /** The term on this seat is over, and is not released: its key is removed when its lease would have ended. */
  abandon(seat: Seat, at: number): void {
    if (seat.state === "held") this.#abandon(seat, at);
  }

  #watchUnfollowed(): void {
    if (!this.ended && this.#followers.size === 0) this.#unfollowed.watch();
  }

  /** The seat is nobody's; its key must go, sooner or later. */
  #abandon(seat: Seat, from?: number): void {
    if (seat.state === "left") return;
    seat.leave();
    this.#seats.delete(seat);
    this.#strays.add(seat, from);
  }

  #leave(seat: Seat): void {
    seat.leave();
    this.forget(seat);
  }

  forget(seat: Seat): void {
    this.#seats.delete(seat);
    this.#strays.delete(seat);
    if (this.#elections.get(seat.election) === seat) this.#elections.delete(seat.election);
  }

  #lose(why: string): void {
    this.#end("lost");
    this.#retired(this);
    this.#tellLost(why);
  }

  /** First those who follow: none of their terms is held any more. */
  #tellLost(why: string): void {
    for (const follower of this.#followers) follower.lost();
    const many = this.#seats.size > TOLD_AT_ONCE;
    for (const seat of this.#seats) seat.lose(why, many && seat.state === "held" ? "followed" : "told");
  }

  #end(how: "lost" | "retired"): void {
    if (this.#ended !== undefined) return;
    this.#ended = how;
    this.#renewals.stop();
    this.#unfollowed.stop();
    this.#strays.close();
    this.#closing.abort(new ConclaveError("unavailable", "the etcd lease is gone"));
  }
}
