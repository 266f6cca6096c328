/**
 * One line of virtual time for a whole world. Events run in the order of
 * (time, seeded priority, sequence); between two events every promise that can
 * settle has settled.
 *
 * Promises are drained by a real `setImmediate`: it runs after the microtask
 * queue is empty, however deep an `await` chain is. Counting a fixed number of
 * hops is faster and wrong; `process._tickCallback` loses events.
 */
import { Random } from "./random.js";

/** Virtual time has a grain, so that events do meet in one instant and race. */
const GRAIN = 8;

export interface Scheduled {
  readonly time: number;
  cancel(): void;
}

class Event implements Scheduled {
  cancelled = false;
  constructor(
    readonly time: number,
    readonly priority: number,
    readonly sequence: number,
    /** Whether node code runs in it: then promises are drained afterwards. */
    readonly drains: boolean,
    public run: () => void,
  ) {}

  cancel(): void {
    this.cancelled = true;
    this.run = nothing;
  }
}

const nothing = (): void => {};

function before(a: Event, b: Event): boolean {
  if (a.time !== b.time) return a.time < b.time;
  if (a.priority !== b.priority) return a.priority < b.priority;
  return a.sequence < b.sequence;
}

export class Scheduler {
  /** True time, in milliseconds since the world began. No node can see it. */
  now = 0;
  /** Events that ran. */
  count = 0;
  readonly #random: Random;
  readonly #heap: Event[] = [];
  #sequence = 0;
  #stopped = false;

  constructor(seed: number) {
    this.#random = new Random(seed, "scheduler");
  }

  /** Runs `run` at `time`, or now if that is past, and drains promises after it. */
  at(time: number, run: () => void): Scheduled {
    return this.#push(time, this.#random.next(), true, run);
  }

  /** The same for what runs no node code: nothing to drain. */
  quietly(time: number, run: () => void): Scheduled {
    return this.#push(time, this.#random.next(), false, run);
  }

  /** At this instant, after whatever was put in the same way before, ahead of other events. */
  inOrder(run: () => void): Scheduled {
    return this.#push(this.now, -1, true, run);
  }

  /** Ends the run after the present event. */
  stop(): void {
    this.#stopped = true;
  }

  /**
   * Runs events up to and including `until`. `settled` is called whenever
   * promises have been drained, and says whether it disturbed any, so that they
   * are drained again.
   */
  run(until: number, settled: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const afterDrain = (): void => {
        try {
          if (settled()) {
            setImmediate(afterDrain);
            return;
          }
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
          return;
        }
        step();
      };
      const step = (): void => {
        try {
          for (;;) {
            const event = this.#stopped ? undefined : this.#take(until);
            if (event === undefined) {
              this.now = this.#stopped ? this.now : until;
              resolve();
              return;
            }
            this.now = event.time;
            this.count++;
            event.run();
            if (event.drains) {
              setImmediate(afterDrain);
              return;
            }
          }
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      setImmediate(step);
    });
  }

  #push(time: number, priority: number, drains: boolean, run: () => void): Scheduled {
    const grained = Math.max(this.now, Math.ceil(time * GRAIN) / GRAIN);
    const event = new Event(grained, priority, this.#sequence++, drains, run);
    const heap = this.#heap;
    let index = heap.length;
    heap.push(event);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !before(event, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = event;
    return event;
  }

  #take(until: number): Event | undefined {
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined || first.time > until) return undefined;
      this.#removeFirst();
      if (!first.cancelled) return first;
    }
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      let below = heap[child];
      if (below === undefined) break;
      const right = heap[child + 1];
      if (right !== undefined && before(right, below)) {
        child++;
        below = right;
      }
      if (!before(below, last)) break;
      heap[index] = below;
      index = child;
    }
    heap[index] = last;
  }
}
