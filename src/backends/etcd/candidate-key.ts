/**
 * One candidate's key in one election, attached to a lease: it is deleted when
 * the lease ends. Used once; its token, once known, does not change. Whether the
 * put arrived can be unknown, and is recorded as such.
 */
import type { Extension } from "../../seam/backend.js";
import { ConclaveError } from "../../kit/errors.js";
import type { Stop } from "../../kit/stop.js";
import type { CombinedTransactions } from "./combined-transactions.js";
import type { CallLimits, EtcdClient, KeyValue, Operation, Transaction, WatchEvent } from "./client.js";

export type CandidateKeyState = "waiting" | "held" | "left";

/** A key as a renewal last read it. While the store has this revision, it has not changed. */
export interface LastSeen {
  readonly revision: bigint;
  readonly connection: object;
  /** The predecessor's key that was read with it. */
  readonly predecessor: CandidateKey["predecessor"];
}

/** The lease that a key is attached to. */
export interface CandidateKeyOwner {
  readonly id: bigint;
  /** For those that leave. */
  readonly transactions: Pick<CombinedTransactions, "ask">;
  /** The key is lost. */
  forget(candidateKey: CandidateKey): void;
}

/** Which candidate asks for a key, in which election. */
export interface CandidateKeyRequest {
  readonly election: string;
  readonly candidate: string;
  readonly seen?: ((token: bigint) => void) | undefined;
}

/** It is also the hold's revocation signal: one object fewer for each of thousands of holds. */
export class CandidateKey implements Stop {
  readonly key: string;
  readonly lease: bigint;
  readonly election: string;
  readonly candidate: string;
  state: CandidateKeyState = "waiting";
  /** Create revision of the key, once known. */
  token: bigint | undefined;
  /** Key that holds the candidate's id; `undefined` where we may not write one. */
  identityKey: string | undefined;
  /** Key that names the heir, once this leader has written it: removed with the candidate's key. */
  heirKey: string | undefined;
  /** Tokens of the leader that asked for us as its heir, and of those between us that were asked to give way. */
  heirOf: ReadonlySet<bigint> | undefined;
  /** Somebody touched the key: a leader is about to hand over, and something is asked of us. */
  touched = false;
  /** Renewals in a row in which its key was not allowed to be read. */
  denials = 0;
  /** A put was sent: the key may exist, whether or not an answer came. */
  sent = false;
  /** The key whose deletion would make it our turn, while we wait for it. */
  predecessor: { readonly key: string; readonly createRevision: bigint } | undefined;
  /** The last extension of the lease after whose request the key was seen in the store. */
  extension: Extension | undefined;
  /** When and where a renewal last read the key, and its predecessor. */
  seen: LastSeen | undefined;
  /** Monotonic time of the request last handed out to the holder: the next renewal must be newer. */
  handedOut = 0;
  /** Called with every token this campaign sees: its own, and those ahead of it. */
  readonly #seen: (token: bigint) => void;
  readonly #client: EtcdClient;
  readonly #owner: CandidateKeyOwner;
  /** Why it is certainly gone, if it is. The error is created lazily: most are never read. */
  #why: string | undefined;
  #lost: ConclaveError | undefined;
  #denied = false;
  #failure: unknown;
  #wakeWaiter: (() => void) | undefined;
  #woken = false;
  #unwatch: (() => void) | undefined;
  #listener: (() => void) | undefined;

  constructor(client: EtcdClient, owner: CandidateKeyOwner, key: string, request: CandidateKeyRequest) {
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

  get reason(): unknown {
    return this.lost;
  }

  /** One listener, called once: the law's. */
  addEventListener(_type: "abort", listener: () => void): void {
    this.#listener = listener;
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    if (this.#listener === listener) this.#listener = undefined;
  }

  /** Why the key is certainly gone, if it is. */
  get lost(): ConclaveError | undefined {
    if (this.#why === undefined) return undefined;
    return (this.#lost ??= new ConclaveError(
      "unavailable",
      `the place in election "${this.election}" was lost: ${this.#why}`,
    ));
  }

  /** The key is in the store. From now on its deletion, by anyone, is watched. */
  created(token: bigint): void {
    this.token = token;
    this.#seen(token);
    this.#watch(token + 1n);
  }

  /** A candidate's key ahead of ours: our token must be higher. A key created later is behind us. */
  seenAhead(kv: KeyValue | undefined): void {
    if (kv !== undefined && (this.token === undefined || kv.createRevision < this.token))
      this.#seen(kv.createRevision);
  }

  /** What stands in its place, in a layout with one key: a later leader's, whose token counts as seen. On our lease it is our own. */
  inItsPlace(kv: KeyValue | undefined): void {
    if (kv !== undefined && kv.lease !== this.lease) this.#seen(kv.createRevision);
  }

  lose(why: string): void {
    if (this.#why !== undefined || this.state === "left") return;
    this.#why = why;
    this.#stopWatching();
    this.wake();
    this.#owner.forget(this);
    this.#tell();
  }

  /** Its key may no longer be read, so no renewal counts for it: the term ends, the key is still to be removed. */
  deny(): void {
    this.#denied = true;
    this.#tell();
  }

  /** The key is gone, or the orphaned keys include it. */
  leave(): void {
    this.state = "left";
    this.#stopWatching();
    this.wake();
  }

  /** The waiting candidate should read again. */
  wake(): void {
    this.#woken = true;
    this.#wakeWaiter?.();
  }

  /** Waiting is not allowed: the waiting candidate gets this error. */
  fail(why: unknown): void {
    this.#failure = why;
    this.wake();
  }

  /** Waits for {@link wake}. A wake while nobody waits is kept for the next call. */
  untilWoken(signal: Stop): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        this.#wakeWaiter = undefined;
        this.#woken = false;
        signal.removeEventListener("abort", done);
        if (signal.aborted) reject(signal.reason);
        else if (this.#why !== undefined) reject(this.lost);
        else if (this.#failure !== undefined) reject(this.#failure);
        else resolve();
      };
      if (this.#woken || signal.aborted) return done();
      this.#wakeWaiter = done;
      signal.addEventListener("abort", done);
    });
  }

  /**
   * Removes the key, if it is still this very one. Guarded by its create
   * revision; while that is unknown, by the lease, which no one else uses in
   * this election.
   */
  async remove(limits: CallLimits): Promise<void> {
    if (!this.sent || this.#why !== undefined) return;
    this.#stopWatching(); // its deletion is our own
    await this.#owner.transactions.ask(removalOf(this, this.token), limits);
  }

  #watch(startRevision: bigint): void {
    this.#unwatch = this.#client.watch({ key: this.key, startRevision, unhurried: true }, (notice) => {
      if (notice.kind === "events") this.#changed(notice.events);
      // The next renewal reads the key itself, so a deletion during the gap is found then.
      else if (notice.kind === "compacted") this.#watch(notice.revision + 1n);
    });
  }

  #changed(events: readonly WatchEvent[]): void {
    if (events.some(({ type }) => type === "delete")) return this.lose("its key was deleted");
    if (this.state !== "waiting") return; // a value of our own
    this.touched = true;
    this.wake();
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

/** The operations that join the election: put the key, and the identity key with it. */
export function joinOperations(candidateKey: CandidateKey, value: string): Operation[] {
  const { key, identityKey, candidate, lease } = candidateKey;
  const identity =
    identityKey === undefined ? [] : [{ kind: "put", key: identityKey, value: candidate, lease } as const];
  return [{ kind: "put", key, value, lease }, ...identity];
}

export function removalOf(candidateKey: CandidateKey, token: bigint | undefined): Transaction {
  const { key, identityKey, heirKey, lease } = candidateKey;
  const guard =
    token === undefined
      ? ({ target: "lease", key, value: lease } as const)
      : ({ target: "create", key, value: token } as const);
  const keys = [key, identityKey, heirKey].filter((each) => each !== undefined);
  return { when: [guard], then: keys.map((gone) => ({ kind: "delete", key: gone })), otherwise: [] };
}
