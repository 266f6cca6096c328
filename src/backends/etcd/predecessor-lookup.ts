/**
 * Finds the key just ahead of ours, which tells whether it is our turn. The
 * first lookup is sent at once; those that arrive while one is under way are
 * sent together. A process that waits in thousands of elections is woken
 * thousands of times when one lease ends, and a read costs the server far more
 * than the keys it returns.
 */
import type { Clock, Timer } from "../../seam/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import { StopSource } from "../../kit/stop.js";
import { onAbort } from "../../kit/wait.js";
import type { CallLimits, EtcdClient, KeyValue, Operation } from "./client.js";
import { askTogether } from "./ask-together.js";
import type { CandidateKey } from "./candidate-key.js";

/** Two ranges each; etcd accepts 128 operations in a transaction. */
const KEYS_PER_TRANSACTION = 60;
/** A slow transaction does not delay later lookups by more than this. */
const MAX_QUEUE_MS = 20;

/** The keys of an election's queue. */
interface Queue {
  readonly key: string;
  readonly rangeEnd: string;
}

interface Lookup {
  readonly candidateKey: CandidateKey;
  /** Its key's create revision. */
  readonly token: bigint;
  readonly queue: Queue;
  readonly limits: CallLimits;
  resolve(predecessor: KeyValue | undefined): void;
  reject(error: unknown): void;
  /** The caller's signal was aborted. */
  cancelled: boolean;
  /** Called when that happens. */
  onCancel: () => void;
}

export class PredecessorLookup {
  readonly #client: EtcdClient;
  readonly #clock: Clock;
  #queued: Lookup[] = [];
  #underWay = 0;
  #timer: Timer | undefined;

  constructor(client: EtcdClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /**
   * The key just ahead of this one in the queue; `undefined` if there is none:
   * then this candidate leads. The read is linearizable, sent after the call, and
   * includes our own key at the same revision: if that is gone, the candidate key
   * is lost and the promise rejects.
   */
  find(
    candidateKey: CandidateKey,
    token: bigint,
    queue: Queue,
    limits: CallLimits,
  ): Promise<KeyValue | undefined> {
    return new Promise((resolve, reject) => {
      const lookup: Lookup = {
        ...{ candidateKey, token, queue, limits, cancelled: false },
        onCancel: () => this.#drop(lookup),
        resolve: (predecessor) => {
          unlink();
          resolve(predecessor);
        },
        reject: (error) => {
          unlink();
          reject(error);
        },
      };
      let unlink = (): void => {};
      unlink = onAbort(limits.signal, () => {
        lookup.cancelled = true;
        reject(limits.signal.reason);
        lookup.onCancel();
      });
      this.#enqueue(lookup);
    });
  }

  #enqueue(lookup: Lookup): void {
    if (lookup.cancelled) return;
    this.#queued.push(lookup);
    if (this.#underWay === 0 || this.#queued.length === KEYS_PER_TRANSACTION) this.#flush();
    else this.#timer ??= this.#clock.after(MAX_QUEUE_MS, () => this.#flush());
  }

  #drop(lookup: Lookup): void {
    this.#queued = this.#queued.filter((other) => other !== lookup);
    if (this.#queued.length > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Sends all that are queued: never more than fit into one transaction. */
  #flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const lookups = this.#queued;
    this.#queued = [];
    // Grouped by time limit: the shortest must not apply to all.
    for (const limitMs of new Set(lookups.map(({ limits }) => limits.limitMs)))
      void this.#ask(lookups.filter(({ limits }) => limits.limitMs === limitMs));
  }

  async #ask(lookups: readonly Lookup[]): Promise<void> {
    await askTogether(
      lookups,
      (some) => this.#read(some.filter(({ cancelled }) => !cancelled)),
      (some, error) => {
        for (const lookup of some) if (!lookup.cancelled) lookup.reject(error);
      },
    );
  }

  async #read(lookups: readonly Lookup[]): Promise<void> {
    if (lookups.length === 0) return;
    this.#underWay++;
    const stopSource = new StopSource();
    let waiting = lookups.length;
    for (const lookup of lookups) {
      lookup.onCancel = () => {
        if (--waiting === 0) stopSource.stop(lookup.limits.signal.reason);
      };
    }
    const limitMs = lookups[0]?.limits.limitMs ?? 0;
    try {
      const then = lookups.flatMap(operations);
      const { results } = await this.#client.transaction(
        { when: [], then, otherwise: [] },
        { signal: stopSource, limitMs },
      );
      if (results.length !== then.length)
        throw new ConclaveError("unavailable", "etcd did not answer all it was asked; asking again");
      lookups.forEach((lookup, i) => complete(lookup, results[2 * i]?.kvs[0], results[2 * i + 1]?.kvs[0]));
    } finally {
      this.#underWay--;
      this.#flush();
    }
  }
}

/** Both are read at the same revision. */
function operations({ candidateKey, token, queue }: Lookup): Operation[] {
  const { key, rangeEnd } = queue;
  const before = { sort: "newest-first", limit: 1, maxCreateRevision: token - 1n, keysOnly: true } as const;
  return [
    { kind: "range", key: candidateKey.key, keysOnly: true },
    { kind: "range", key, rangeEnd, ...before },
  ];
}

function complete(lookup: Lookup, own: KeyValue | undefined, predecessor: KeyValue | undefined): void {
  const { candidateKey, token } = lookup;
  candidateKey.seenAhead(predecessor); // also if cancelled: the candidate may campaign again
  if (lookup.cancelled) return;
  if (own?.createRevision === token) return lookup.resolve(predecessor);
  candidateKey.lose("its key is gone");
  lookup.reject(candidateKey.lost ?? new ConclaveError("state", "the candidate left the election"));
}
