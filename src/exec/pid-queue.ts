/** Process numbers that were handed out and wait to be examined. */

/** With more of them a read of all /proc is cheaper. */
const MOST_WAITING = 32_768;

export class PidQueue {
  readonly #inTurn: boolean;
  readonly #pids: number[] = [];
  #oldestNext = true;

  /** `inTurn`: the oldest first, always. */
  constructor(inTurn: boolean) {
    this.#inTurn = inTurn;
  }

  get isEmpty(): boolean {
    return this.#pids.length === 0;
  }

  hasSpaceFor(count: number): boolean {
    return this.#pids.length + count <= MOST_WAITING;
  }

  add(pids: readonly number[]): void {
    for (const pid of pids) this.#pids.push(pid);
  }

  /**
   * The newest: of a chain, in which each starts a successor and ends, only the last link lives. Every second time the
   * oldest, so that none waits without end on a host that starts processes faster than they are examined.
   */
  take(): number | undefined {
    this.#oldestNext = this.#inTurn || !this.#oldestNext;
    return this.#oldestNext ? this.#pids.shift() : this.#pids.pop();
  }

  clear(): void {
    this.#pids.length = 0;
  }
}
