/**
 * One etcd lease under many seats. It is renewed here, once for all of them:
 * one keep-alive per third of the ttl, however many elections it serves, and one
 * transaction for each 120 keys.
 *
 * A renewal is a keep-alive and then linearizable transactions that read all keys
 * of the lease. It counts for a key only if that key is there, and if both answers
 * carry the same raft term: a deposed cluster leader of older servers can answer
 * keep-alives for a lease that the new one lets expire.
 */
import { readClocks } from "../../kit/clock.js";
import { type Clock, type Reading, type Timer } from "../../seam/clock.js";
import type { Extension } from "../../seam/backend.js";
import type { Stop } from "../../kit/stop.js";
import { ConclaveError, isRetriable } from "../../kit/errors.js";
import { bounded, sleep } from "../../kit/wait.js";
import type { CallLimits, EtcdClient } from "./client.js";
import { Seat, type SeatRequest } from "./seat.js";
import { Strays } from "./strays.js";
import { Turns } from "./turns.js";
import { verifyKeys } from "./verify-keys.js";

/** Core asks after nine tenths of a renewal's pace, or later. */
const NEARLY = 0.85;

export interface SharedLeaseOptions {
  readonly client: EtcdClient;
  readonly clock: Clock;
  readonly id: bigint;
  readonly ttlMs: number;
  readonly asked: Reading;
  /** Called when nothing of it is under way any more. */
  readonly retired: (lease: SharedLease) => void;
}

export class SharedLease {
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
  #coming: Promise<Extension> | undefined;
  #timer: Timer | undefined;
  #failures = 0;
  /** The highest revision that the cluster answered with. */
  #revision = 0n;
  /** Some key this candidate may read, for renewals before any seat is taken. */
  #anyKey = "";
  #ended: "lost" | "retired" | undefined;
  #closed: Promise<void> = Promise.resolve();

  constructor(options: SharedLeaseOptions) {
    this.#client = options.client;
    this.#clock = options.clock;
    this.#strays = new Strays(options.client, options.clock);
    this.turns = new Turns(options.client, options.clock);
    this.#retired = options.retired;
    this.id = options.id;
    this.ttlMs = options.ttlMs;
    this.#extension = { asked: options.asked };
    this.#schedule();
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

  /** An extension young enough to build on, renewed if there is none. */
  async fresh(): Promise<Extension> {
    return this.isFresh ? this.#extension : this.renew();
  }

  /**
   * An extension of this seat newer than the one handed out last: one that others
   * brought about meanwhile, or else a renewal now, shared with everybody who asks
   * while it is under way. Many askers wait the moment until the next one is due
   * anyway. A renewal that began before the seat had its key does not count for it.
   */
  async keep(seat: Seat): Promise<Extension> {
    for (let attempt = 0; attempt <= 2; attempt++) {
      if (seat.lost !== undefined) throw seat.lost;
      if (seat.extension !== undefined && seat.extension.asked.now > seat.handedOut) return seat.extension;
      if (attempt < 2) await (this.#seats.size > 1 && this.#nearlyDue ? this.#due() : this.renew());
    }
    throw new ConclaveError(
      "unavailable",
      `the key of election "${seat.election}" was not read in this renewal; asking again`,
    );
  }

  get #nearlyDue(): boolean {
    return this.ageMs >= this.#paceMs * NEARLY;
  }

  /** The renewal that is due soon: one wait for thousands of askers. */
  #due(): Promise<Extension> {
    this.#coming ??= this.#awaitDue().finally(() => {
      this.#coming = undefined;
    });
    return this.#coming;
  }

  async #awaitDue(): Promise<Extension> {
    await sleep(this.#clock, this.#paceMs - this.ageMs, this.#closing.signal);
    return this.#nearlyDue ? this.renew() : this.#extension;
  }

  renew(): Promise<Extension> {
    this.#renewing ??= bounded(
      this.#clock,
      this.ttlMs / 4,
      this.#closing.signal,
      "renewing the etcd lease",
      (signal) => this.#renew(signal),
    ).finally(() => {
      this.#renewing = undefined;
      this.#schedule();
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
    const inOffice = [...this.#seats].some(
      (seat) => seat.state === "held" && now < seat.handedOut + this.ttlMs,
    );
    this.#end("retired");
    for (const seat of this.#seats) seat.lose("its lease was given up");
    if (!inOffice) this.#closed = this.#revoke(limitMs).finally(() => this.#retired(this));
    else this.#retired(this);
    return this.#closed;
  }

  async #revoke(limitMs: number): Promise<void> {
    const never = new AbortController().signal;
    await this.#client.leaseRevoke(this.id, { signal: never, limitMs }).catch(() => {}); // it runs out by itself
  }

  get #paceMs(): number {
    return this.ttlMs / 3;
  }

  async #renew(signal: AbortSignal): Promise<Extension> {
    // Shorter than the whole: a connection that has gone silent is found in time for another try elsewhere.
    const limits = { signal, limitMs: this.ttlMs / 6, urgent: true };
    try {
      this.#extension = await this.#extend(limits);
      this.#failures = 0;
    } catch (error) {
      this.#failures++;
      // Nobody leads by it any more, and nobody may look: kept alive it would bar those who may.
      if (!isRetriable(error) && this.ageMs > this.ttlMs) void this.close(this.ttlMs / 4);
      throw error;
    }
    // Here and not only in our own time: whoever leads by this lease asks a little sooner, and our timer never comes.
    this.#dropExpired();
    this.#sweep();
    return this.#extension;
  }

  async #extend(limits: CallLimits): Promise<Extension> {
    const asked = readClocks(this.#clock);
    const known = this.#revision;
    const { ttl, raftTerm } = await this.#client.leaseKeepAlive(this.id, limits);
    // Those that wait without a key of their own (one key for all) have something to look at too: the one they wait for.
    const seats = [...this.#seats].filter(
      ({ token, predecessor }) => token !== undefined || predecessor !== undefined,
    );
    const extension = ttl > 0n ? { asked } : undefined;
    const { present, revision } = await verifyKeys(this.#client, seats, this.#anyKey, {
      ...{ raftTerm, extension, limits },
    });
    if (revision < known) throw this.#wentBack(known, revision);
    this.#revision = revision;
    if (extension !== undefined) return extension;
    // "No such lease" is believed when the cluster agrees that its keys are gone.
    if (present > 0)
      throw new ConclaveError("unavailable", "etcd denied the lease but still has its keys; asking again");
    this.#lose("its lease is gone");
    throw new ConclaveError(
      "unavailable",
      `etcd no longer knows the lease (${seats.length} keys looked for)`,
    );
  }

  /**
   * The store was restored from a backup. If it has the lease it may also have
   * keys of it that were given back long ago, and that nobody here would remove:
   * the lease is not kept.
   */
  #wentBack(known: bigint, revision: bigint): ConclaveError {
    this.#end("lost");
    for (const seat of this.#seats) seat.lose("etcd was restored from a backup");
    this.#closed = this.#revoke(this.ttlMs / 4).finally(() => this.#retired(this));
    return new ConclaveError(
      "unavailable",
      `etcd's revision went back from ${known} to ${revision}: it was wiped or restored; its lease is given up`,
    );
  }

  #sweep(): void {
    const limits = { signal: this.#closing.signal, limitMs: this.ttlMs / 4 };
    void this.#strays.sweep(limits, (seat) => this.forget(seat));
  }

  #schedule(): void {
    this.#timer?.cancel();
    if (this.ended) return;
    const paceMs = this.#paceMs;
    const retryMs =
      Math.min(paceMs / 3, (paceMs / 32) * 2 ** Math.min(this.#failures, 5)) *
      (0.75 + 0.5 * this.#clock.random());
    const delay = this.#failures > 0 ? retryMs : paceMs - this.ageMs;
    this.#timer = this.#clock.after(Math.min(delay, this.#untilExpired()), () => this.#tick());
  }

  #tick(): void {
    if (this.#dropExpired()) this.#sweep();
    if (this.#seats.size === 0) return void this.close(this.ttlMs / 4); // strays end with it
    if (this.#failures === 0 && !this.#nearlyDue) return this.#schedule();
    this.renew().catch(() => {}); // asked again soon; who needs it will hear
  }

  /**
   * Terms that ran out are not released by core: nobody else takes their keys
   * away. When the last extension that was handed out is over, nobody leads by it
   * any more. Waiting for the next renewal would keep the next leader waiting too.
   */
  #dropExpired(): boolean {
    const now = this.#clock.now();
    const expired = [...this.#seats].filter(
      (seat) => seat.state === "held" && now >= seat.handedOut + this.ttlMs,
    );
    for (const seat of expired) this.#abandon(seat);
    return expired.length > 0;
  }

  /** Milliseconds until the first of them has run out, unless its term is renewed. */
  #untilExpired(): number {
    let first = Infinity;
    for (const seat of this.#seats) if (seat.state === "held") first = Math.min(first, seat.handedOut);
    return Math.max(1, first + this.ttlMs - this.#clock.now());
  }

  /** The seat is nobody's; its key must go, sooner or later. */
  #abandon(seat: Seat): void {
    if (seat.state === "left") return;
    seat.leave();
    this.#seats.delete(seat);
    this.#strays.add(seat);
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
    for (const seat of this.#seats) seat.lose(why);
  }

  #end(how: "lost" | "retired"): void {
    if (this.#ended !== undefined) return;
    this.#ended = how;
    this.#timer?.cancel();
    this.#closing.abort(new ConclaveError("unavailable", "the etcd lease is gone"));
  }
}
