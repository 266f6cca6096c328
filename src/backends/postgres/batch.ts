/**
 * Renewals of many elections in one statement: those that are due in the same
 * turn of the event loop, and those that come while earlier ones are on their way.
 * A process with a thousand elections would otherwise commit a thousand times.
 */
import { onAbort, untilAborted } from "../../kit/wait.js";
import type { RowWrite, Rows } from "./rows.js";

/** Rows in one statement. */
const MOST = 500;
/** Statements on their way at once: one that hangs does not hold up the rest. */
const AT_ONCE = 2;

interface Waiting {
  readonly write: RowWrite;
  readonly signal: AbortSignal;
  resolve(version: bigint | null): void;
  reject(error: unknown): void;
}

export class RenewalBatch {
  readonly #rows: Rows;
  #waiting: Waiting[] = [];
  #sent = 0;
  #scheduled = false;

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  /** The new version; `null` if the row had another than the expected one. */
  add(write: RowWrite, signal: AbortSignal): Promise<bigint | null> {
    const answer = new Promise<bigint | null>((resolve, reject) => {
      this.#waiting.push({ write, signal, resolve, reject });
    });
    if (!this.#scheduled) {
      this.#scheduled = true;
      queueMicrotask(() => {
        this.#scheduled = false;
        this.#send();
      });
    }
    return untilAborted(signal, answer);
  }

  #send(): void {
    while (this.#sent < AT_ONCE) {
      // Nobody waits for those any more, and they were not sent: they must not be later.
      this.#waiting = this.#waiting.filter(({ signal }) => !signal.aborted);
      const some = distinct(this.#waiting.splice(0, MOST), this.#waiting);
      if (some.length === 0) return;
      this.#sent++;
      void this.#renew(some).finally(() => {
        this.#sent--;
        this.#send();
      });
    }
  }

  async #renew(some: readonly Waiting[]): Promise<void> {
    const stop = new AbortController();
    let left = some.length;
    // The statement is given up when the last who waits for it gives up.
    const unlinks = some.map(({ signal }) =>
      onAbort(signal, () => {
        if (--left === 0) stop.abort(signal.reason);
      }),
    );
    try {
      const [only] = some;
      const versions =
        some.length === 1 && only !== undefined
          ? new Map([[only.write.key, await this.#one(only, stop.signal)]])
          : await this.#rows.renewMany(
              some.map(({ write }) => write),
              stop.signal,
            );
      for (const { write, resolve } of some) resolve(versions.get(write.key) ?? null);
    } catch (error) {
      for (const { reject } of some) reject(error);
    } finally {
      for (const unlink of unlinks) unlink();
    }
  }

  #one({ write }: Waiting, signal: AbortSignal): Promise<bigint | null> {
    return this.#rows.write(write, `renewing election "${write.key.slice(2)}"`, signal);
  }
}

/** One write of a key in a statement: a second one waits for the next. */
function distinct(some: readonly Waiting[], later: Waiting[]): Waiting[] {
  const keys = new Set<string>();
  return some.filter((waiting) => {
    const first = !keys.has(waiting.write.key);
    if (first) keys.add(waiting.write.key);
    else later.unshift(waiting);
    return first;
  });
}
