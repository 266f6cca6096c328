/**
 * Is it our turn? One seat is looked at without delay; those that ask while a
 * look is under way are looked at together. A process that waits in thousands of
 * elections hears of the end of one lease thousands of times at once, and each
 * read costs the server far more than what it reads.
 */
import type { Clock, Timer } from "../../seam/clock.js";
import { ConclaveError, isRetriable } from "../../kit/errors.js";
import { Halt } from "../../kit/stop.js";
import { onAbort } from "../../kit/wait.js";
import type { CallLimits, EtcdClient, KeyValue, Operation } from "./client.js";
import type { Seat } from "./seat.js";

/** Two ranges each; etcd takes 128 operations in a transaction. */
const SEATS_PER_LOOK = 60;
/** A look that takes its time does not hold up the others for longer. */
const LONGEST_WAIT_MS = 20;

/** The keys of an election's queue. */
interface Queue {
  readonly key: string;
  readonly rangeEnd: string;
}

interface Asker {
  readonly seat: Seat;
  /** Its key's create revision. */
  readonly token: bigint;
  readonly queue: Queue;
  readonly limits: CallLimits;
  answer(ahead: KeyValue | undefined): void;
  fail(error: unknown): void;
  /** Nobody waits for the answer any more. */
  gone: boolean;
  /** Told when that comes true. */
  left: () => void;
}

export class Turns {
  readonly #client: EtcdClient;
  readonly #clock: Clock;
  #line: Asker[] = [];
  #looks = 0;
  #timer: Timer | undefined;

  constructor(client: EtcdClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /**
   * Who stands just before this seat: `undefined` if nobody does, and then the
   * office is ours. Asked after the call, of the cluster, and about our own key at
   * the same instant: if that is gone the seat is lost, and the promise rejects.
   */
  ahead(seat: Seat, token: bigint, queue: Queue, limits: CallLimits): Promise<KeyValue | undefined> {
    return new Promise((resolve, reject) => {
      const asker: Asker = {
        ...{ seat, token, queue, limits, gone: false },
        left: () => this.#leave(asker),
        answer: (ahead) => {
          unlink();
          resolve(ahead);
        },
        fail: (error) => {
          unlink();
          reject(error);
        },
      };
      let unlink = (): void => {};
      unlink = onAbort(limits.signal, () => {
        asker.gone = true;
        reject(limits.signal.reason);
        asker.left();
      });
      this.#ask(asker);
    });
  }

  #ask(asker: Asker): void {
    if (asker.gone) return;
    this.#line.push(asker);
    if (this.#looks === 0 || this.#line.length === SEATS_PER_LOOK) this.#look();
    else this.#timer ??= this.#clock.after(LONGEST_WAIT_MS, () => this.#look());
  }

  #leave(asker: Asker): void {
    this.#line = this.#line.filter((other) => other !== asker);
    if (this.#line.length > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Looks for all that stand in line: never more than fit into one transaction. */
  #look(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const askers = this.#line;
    this.#line = [];
    // Only those with the same patience together: the least patient must not set the limit for all.
    for (const limitMs of new Set(askers.map(({ limits }) => limits.limitMs)))
      void this.#lookFor(askers.filter(({ limits }) => limits.limitMs === limitMs));
  }

  async #lookFor(askers: readonly Asker[]): Promise<void> {
    this.#looks++;
    const halt = new Halt();
    let waiting = askers.length;
    for (const asker of askers) {
      asker.left = () => {
        if (--waiting === 0) halt.halt(asker.limits.signal.reason);
      };
    }
    const limitMs = askers[0]?.limits.limitMs ?? 0;
    try {
      const then = askers.flatMap(questions);
      const { results } = await this.#client.transaction(
        { when: [], then, otherwise: [] },
        { signal: halt, limitMs },
      );
      if (results.length !== then.length)
        throw new ConclaveError("unavailable", "etcd did not answer all it was asked; asking again");
      askers.forEach((asker, i) => decide(asker, results[2 * i]?.kvs[0], results[2 * i + 1]?.kvs[0]));
    } catch (error) {
      this.#failed(askers, error);
    }
    this.#looks--;
    this.#look();
  }

  /** What is refused may be one of them alone: then each asks for itself. */
  #failed(askers: readonly Asker[], error: unknown): void {
    const waiting = askers.filter(({ gone }) => !gone);
    const apart = askers.length > 1 && !isRetriable(error);
    for (const asker of waiting) {
      if (apart) void this.#lookFor([asker]);
      else asker.fail(error);
    }
  }
}

/** Both are answered for the same instant. */
function questions({ seat, token, queue }: Asker): Operation[] {
  const { key, rangeEnd } = queue;
  const before = { sort: "newest-first", limit: 1, maxCreateRevision: token - 1n, keysOnly: true } as const;
  return [
    { kind: "range", key: seat.key, keysOnly: true },
    { kind: "range", key, rangeEnd, ...before },
  ];
}

function decide(asker: Asker, own: KeyValue | undefined, ahead: KeyValue | undefined): void {
  const { seat, token } = asker;
  seat.met(ahead); // also for whoever has given up: it may campaign again
  if (asker.gone) return;
  if (own?.createRevision === token) return asker.answer(ahead);
  seat.lose("its key is gone");
  asker.fail(seat.lost ?? new ConclaveError("state", "the place in the election was left"));
}
