/**
 * Transactions of many candidates on one lease, sent as one where they are asked
 * for at once. A process that joins or leaves thousands of elections would
 * otherwise send as many requests, and each costs both sides far more than the
 * keys in it.
 *
 * Those of one turn of the event loop are sent together at its end. A combined
 * transaction writes all or nothing: if one candidate's comparison fails, or
 * etcd refuses, nothing was written, and each is sent alone.
 */
import type { Clock, Timer } from "../../seam/clock.js";
import { ConclaveError, isRetriable } from "../../kit/errors.js";
import { StopSource } from "../../kit/stop.js";
import { onAbort } from "../../kit/wait.js";
import type { CallLimits, EtcdClient, Transaction, TransactionAnswer } from "./client.js";

/** etcd takes 128 comparisons, and 128 operations, in a transaction, unless it was told otherwise. */
const MOST_OPERATIONS = 120;
/** With as many under way, others wait for one of them to end: under load more fit into each. */
const AT_ONCE = 4;
/** A full one does not wait for that, and nobody longer than MAX_QUEUE_MS, up to this many. */
const MOST_AT_ONCE = 16;
const MAX_QUEUE_MS = 20;

/** One candidate's transaction. */
interface Part {
  readonly transaction: Transaction;
  readonly limits: CallLimits;
  /** It is about to be sent. */
  sending(): void;
  resolve(answer: TransactionAnswer): void;
  reject(error: unknown): void;
  /** The caller's signal was aborted. */
  cancelled: boolean;
  /** Called when that happens. */
  onCancel: () => void;
}

export class CombinedTransactions {
  readonly #client: EtcdClient;
  readonly #clock: Clock;
  #queued: Part[] = [];
  /** Operations of all that are queued. */
  #size = 0;
  #underWay = 0;
  /** The queue is sent at the end of this turn, or later by a timer. */
  #turn = false;
  #timer: Timer | undefined;

  constructor(client: EtcdClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /**
   * The answer to this transaction, as if it had been sent alone. `sending` is called just before it is sent: if the
   * signal aborts earlier, it never was.
   */
  ask(transaction: Transaction, limits: CallLimits, sending = (): void => {}): Promise<TransactionAnswer> {
    return new Promise((resolve, reject) => {
      let unlink = (): void => {};
      const part: Part = {
        ...{ transaction, limits, sending, cancelled: false },
        onCancel: () => {},
        resolve: (answer) => {
          unlink();
          resolve(answer);
        },
        reject: (error) => {
          unlink();
          reject(error);
        },
      };
      unlink = onAbort(limits.signal, () => {
        part.cancelled = true;
        reject(limits.signal.reason);
        part.onCancel();
      });
      if (!part.cancelled) this.#enqueue(part);
    });
  }

  #enqueue(part: Part): void {
    this.#queued.push(part);
    this.#size += sizeOf(part);
    if (this.#turn) return;
    this.#turn = true;
    queueMicrotask(() => {
      this.#turn = false;
      this.#sendDue();
    });
  }

  /** Sends what need not wait; for the rest there is the end of one under way, or a timer. */
  #sendDue(): void {
    while (this.#queued.length > 0 && this.#underWay < MOST_AT_ONCE) {
      if (this.#underWay >= AT_ONCE && this.#size < MOST_OPERATIONS) break;
      this.#flush();
    }
    if (this.#queued.length > 0 && this.#underWay < MOST_AT_ONCE)
      this.#timer ??= this.#clock.after(MAX_QUEUE_MS, () => {
        this.#timer = undefined;
        if (this.#underWay < MOST_AT_ONCE) this.#flush();
        this.#sendDue();
      });
  }

  /** One has ended: those that waited for it go at once. */
  #sendOneMore(): void {
    this.#flush();
    this.#sendDue();
  }

  /** Sends as many of the queued as fit into one transaction. */
  #flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    let [count, size] = [0, 0];
    for (const part of this.#queued) {
      if (count > 0 && size + sizeOf(part) > MOST_OPERATIONS) break;
      size += sizeOf(part);
      count++;
    }
    const parts = this.#queued.splice(0, count).filter(({ cancelled }) => !cancelled);
    this.#size -= size;
    // Grouped by time limit: the shortest must not apply to all.
    for (const limitMs of new Set(parts.map(({ limits }) => limits.limitMs)))
      void this.#send(
        parts.filter(({ limits }) => limits.limitMs === limitMs),
        limitMs,
      );
  }

  async #send(parts: readonly Part[], limitMs: number): Promise<void> {
    this.#underWay++;
    const stop = new StopSource();
    let waiting = parts.length;
    for (const part of parts) {
      part.sending();
      part.onCancel = () => {
        if (--waiting === 0) stop.stop(part.limits.signal.reason);
      };
    }
    try {
      const answer = await this.#client.transaction(combine(parts), { signal: stop, limitMs });
      if (answer.succeeded || parts.length === 1) distribute(parts, answer);
      else this.#eachAlone(parts, limitMs);
    } catch (error) {
      // What is not known is not known of any of them. A refusal may concern one only.
      if (parts.length > 1 && !isRetriable(error)) this.#eachAlone(parts, limitMs);
      else for (const part of parts) part.reject(error);
    }
    this.#underWay--;
    if (this.#queued.length > 0 && !this.#turn) this.#sendOneMore();
  }

  #eachAlone(parts: readonly Part[], limitMs: number): void {
    for (const part of parts) if (!part.cancelled) void this.#send([part], limitMs);
  }
}

function sizeOf({ transaction }: Part): number {
  return Math.max(transaction.when.length, transaction.then.length);
}

function combine(parts: readonly Part[]): Transaction {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only.transaction;
  return {
    when: parts.flatMap(({ transaction }) => transaction.when),
    then: parts.flatMap(({ transaction }) => transaction.then),
    otherwise: [],
  };
}

/** Each gets the results of its own operations. */
function distribute(parts: readonly Part[], answer: TransactionAnswer): void {
  const asked = (part: Part): number =>
    (answer.succeeded ? part.transaction.then : part.transaction.otherwise).length;
  if (answer.results.length !== parts.reduce((sum, part) => sum + asked(part), 0))
    throw new ConclaveError("unavailable", "etcd did not answer all it was asked; asking again");
  let at = 0;
  for (const part of parts) {
    const from = at;
    at += asked(part);
    part.resolve(parts.length === 1 ? answer : { ...answer, results: answer.results.slice(from, at) });
  }
}
