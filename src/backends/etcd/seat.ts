/**
 * One candidate's place in one election: a key that stands or falls with the
 * lease it is attached to. A seat is used once; its token, once known, does not
 * change. What it does not know (did the put arrive?) it remembers as unknown.
 */
import type { Extension, Revocation } from "../../seam/backend.js";
import { ConclaveError } from "../../kit/errors.js";
import type { Stop } from "../../kit/stop.js";
import type { CallLimits, EtcdClient, KeyValue, Operation, Transaction } from "./client.js";

export type SeatState = "standing" | "held" | "left";

/** A key as a renewal saw it. While the store has this revision, it is as it was. */
export interface Sighting {
  readonly revision: bigint;
  readonly connection: object;
  /** What was looked at beside it. */
  readonly predecessor: Seat["predecessor"];
}

/** The lease that a seat stands on. */
export interface SeatOwner {
  readonly id: bigint;
  /** The seat is lost. */
  forget(seat: Seat): void;
}

/** Who asks for a seat, and where. */
export interface SeatRequest {
  readonly election: string;
  readonly candidate: string;
  readonly seen?: ((token: bigint) => void) | undefined;
}

/** Its loss is what core hears of a hold's revocation; a seat is small, since there may be thousands. */
export class Seat implements Revocation {
  readonly key: string;
  readonly lease: bigint;
  readonly election: string;
  readonly candidate: string;
  state: SeatState = "standing";
  /** Create revision of the key, once known. */
  token: bigint | undefined;
  /** Key of the card that says who we are; `undefined` where we may not write one. */
  card: string | undefined;
  /** Renewals in a row in which its key was not allowed to be read. */
  denials = 0;
  /** A put was sent: the key may exist, whether or not an answer came. */
  sent = false;
  /** The key whose end would bring our turn, while we wait for it. */
  predecessor: { readonly key: string; readonly createRevision: bigint } | undefined;
  /** The last extension of the lease after whose question the key was seen in the store. */
  extension: Extension | undefined;
  /** Where and when a renewal last saw the key, and the key it waits for. */
  seen: Sighting | undefined;
  /** Monotonic instant of the question last handed to core by itself: a renewal asked for must be newer. */
  handedOut = 0;
  /** Told of every token this campaign meets: its own, and those ahead of it. */
  readonly #seen: (token: bigint) => void;
  readonly #client: EtcdClient;
  readonly #owner: SeatOwner;
  /** Why it is gone for certain, if it is; an error is made of it when somebody asks. */
  #why: string | undefined;
  #lost: ConclaveError | undefined;
  #denied = false;
  #refused: unknown;
  #ring: (() => void) | undefined;
  #rung = false;
  #unwatch: (() => void) | undefined;
  #listener: (() => void) | undefined;

  constructor(client: EtcdClient, owner: SeatOwner, key: string, request: SeatRequest) {
    this.#client = client;
    this.#owner = owner;
    this.key = key;
    this.lease = owner.id;
    this.election = request.election;
    this.candidate = request.candidate;
    this.#seen = request.seen ?? (() => {});
  }

  get aborted(): boolean {
    return this.#why !== undefined || this.#denied;
  }

  /** One listener, told once: core's. */
  addEventListener(_type: "abort", listener: () => void): void {
    this.#listener = listener;
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    if (this.#listener === listener) this.#listener = undefined;
  }

  /** Why the seat is gone for certain, if it is. */
  get lost(): ConclaveError | undefined {
    if (this.#why === undefined) return undefined;
    return (this.#lost ??= new ConclaveError(
      "unavailable",
      `the place in election "${this.election}" was lost: ${this.#why}`,
    ));
  }

  /** The key is in the store. From here on its removal, by whomever, is news. */
  entered(token: bigint): void {
    this.token = token;
    this.#seen(token);
    this.#watch(token + 1n);
  }

  /** A candidate's key that is ahead of ours: our token must be higher. One that was created later is behind us. */
  met(kv: KeyValue | undefined): void {
    if (kv !== undefined && (this.token === undefined || kv.createRevision < this.token))
      this.#seen(kv.createRevision);
  }

  /** `followed`: whoever holds it learns of the loss from the lease. */
  lose(why: string, how: "told" | "followed" = "told"): void {
    if (this.#why !== undefined || this.state === "left") return;
    this.#why = why;
    this.#stopWatching();
    this.ring();
    this.#owner.forget(this);
    if (how === "told") this.#tell();
  }

  /** Its key may not be read any more, so no renewal counts for it: the term ends, the key is still to be removed. */
  deny(): void {
    this.#denied = true;
    this.#tell();
  }

  /** Nothing of this seat is left in the store, or it is somebody else's task to see to that. */
  leave(): void {
    this.state = "left";
    this.#stopWatching();
    this.ring();
  }

  /** Something happened that is worth another look. */
  ring(): void {
    this.#rung = true;
    this.#ring?.();
  }

  /** Waiting is not allowed: whoever does hears why. */
  refuse(why: unknown): void {
    this.#refused = why;
    this.ring();
  }

  /** Sleeps until {@link ring}. Rings that nobody waited for are not lost. */
  rung(signal: Stop): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        this.#ring = undefined;
        this.#rung = false;
        signal.removeEventListener("abort", done);
        if (signal.aborted) reject(signal.reason);
        else if (this.#why !== undefined) reject(this.lost);
        else if (this.#refused !== undefined) reject(this.#refused);
        else resolve();
      };
      if (this.#rung || signal.aborted) return done();
      this.#ring = done;
      signal.addEventListener("abort", done);
    });
  }

  /**
   * Removes the key, if it is still this very one. Guarded by its create
   * revision; while that is unknown, by the lease, which no one else uses in
   * this election.
   */
  async vacate(limits: CallLimits): Promise<void> {
    if (!this.sent || this.#why !== undefined) return;
    await this.#client.transaction(removal(this, this.token), limits);
  }

  #watch(startRevision: bigint): void {
    this.#unwatch = this.#client.watch({ key: this.key, startRevision, skip: "puts" }, (notice) => {
      if (notice.kind === "events") this.lose("its key was deleted");
      // The next renewal looks at the key itself: whatever happened in the gap is found there.
      else if (notice.kind === "compacted") this.#watch(notice.revision + 1n);
    });
  }

  #tell(): void {
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.();
  }

  #stopWatching(): void {
    this.#unwatch?.();
    this.#unwatch = undefined;
  }
}

/** What joins the election: the key, and the card beside it. */
export function entry(seat: Seat, value: string): Operation[] {
  const card =
    seat.card === undefined
      ? []
      : [{ kind: "put", key: seat.card, value: seat.candidate, lease: seat.lease } as const];
  return [{ kind: "put", key: seat.key, value, lease: seat.lease }, ...card];
}

export function removal(seat: Seat, token: bigint | undefined): Transaction {
  const { key, card, lease } = seat;
  const guard =
    token === undefined
      ? ({ target: "lease", key, value: lease } as const)
      : ({ target: "create", key, value: token } as const);
  const keys = card === undefined ? [key] : [key, card];
  return { when: [guard], then: keys.map((gone) => ({ kind: "delete", key: gone })), otherwise: [] };
}
