/**
 * A plain `AbortController` for the simulator's workers. Node's own costs some
 * 10 microseconds for each listener that comes and goes, which is a third of a
 * simulated schedule. This one does the same in the same order: seeds that are
 * run twice run the second time with Node's, and their traces must be equal.
 */

type Listener = () => void;

class PlainSignal {
  aborted = false;
  reason: unknown = undefined;
  readonly #listeners = new Set<Listener>();

  addEventListener(_type: "abort", listener: Listener): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_type: "abort", listener: Listener): void {
    this.#listeners.delete(listener);
  }

  /** Never warns. */
  setMaxListeners(): void {}

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  /** All listeners here are told once; one that throws does not keep the others from being told. */
  fire(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    for (const listener of [...this.#listeners]) {
      if (!this.#listeners.delete(listener)) continue; // removed by one that was told before it
      try {
        listener();
      } catch (error) {
        process.nextTick(() => {
          throw error;
        });
      }
    }
  }
}

/** One for all: making it costs more than the rest, and nobody looks at its stack. */
const ABORTED = new DOMException("This operation was aborted", "AbortError");

class PlainController {
  readonly signal = new PlainSignal();

  abort(reason: unknown = ABORTED): void {
    this.signal.fire(reason);
  }
}

const original = globalThis.AbortController;

export function useFastAbort(): void {
  Object.assign(globalThis, { AbortController: PlainController });
}

export function useRealAbort(): void {
  Object.assign(globalThis, { AbortController: original });
}
