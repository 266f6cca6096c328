/**
 * Faults between a backend and its store. The suite asks for them by these
 * names; a backend's author says what they mean for the store. For a server:
 * {@link faultProxy}. For a store in the process: {@link FaultSwitch}.
 */
import type { CallOptions } from "../../seam/backend.js";
import type { RecordStore } from "../../seam/table.js";
import { systemClock } from "../../kit/clock.js";
import { onAbort, sleep } from "../../kit/wait.js";

/** When a fault begins. */
export interface FaultStart {
  /**
   * Answers that still come back before the fault begins. Default 0. With 1, a
   * campaign that reads and then writes loses the answer of its write alone.
   */
  readonly after?: number;
}

/** What the suite can do to the way between a backend and its store, and to the store. */
export interface Faults {
  /** From now on no request reaches the store; requests hang or fail. */
  cut?(): void | Promise<void>;
  /** From now on requests reach the store and take effect, but no answer comes back. Must honour `after`. */
  deafen?(start?: FaultStart): void | Promise<void>;
  /** From now on every request is this long on its way to the store. */
  slow?(delayMs: number): void | Promise<void>;
  /**
   * From now on nothing passes in either direction, and the client is never told: connections that exist
   * now stay open and silent, also after {@link heal}. Connections that are made after `heal` work.
   */
  blackHole?(): void | Promise<void>;
  /** The store loses everything, once: a wiped disk, a flushed cache, a server that was created anew. */
  forget?(): void | Promise<void>;
  /** The store's own clock steps by this much, once; forward if positive. Only for stores that time leases. */
  step?(ms: number): void | Promise<void>;
  /** Ends cut, deafen, slow and blackHole, and waits until the store answers again. */
  heal(): void | Promise<void>;
}

/** Faults of the way to the store; forgetting and stepping clocks are the store's own. */
export type WireFaults = Omit<Faults, "forget" | "step">;

type Mode =
  | { readonly kind: "healthy" }
  | { readonly kind: "cut" }
  | { readonly kind: "deaf" }
  | { readonly kind: "hole" }
  | { readonly kind: "slow"; readonly delayMs: number };

/** One switch for all calls that go through {@link FaultSwitch.pass}. */
export class FaultSwitch implements Required<WireFaults> {
  #mode: Mode = { kind: "healthy" };
  /** Calls that are still answered before the mode above counts. */
  #answersLeft = 0;
  #healed = new AbortController();

  cut(): void {
    this.#set({ kind: "cut" });
  }

  deafen({ after = 0 }: FaultStart = {}): void {
    this.#set({ kind: "deaf" }, after);
  }

  slow(delayMs: number): void {
    this.#set({ kind: "slow", delayMs });
  }

  blackHole(): void {
    this.#set({ kind: "hole" });
  }

  /** Calls that hang are answered with a fault, unless they were lost in a black hole: what became of them stays unknown. */
  heal(): void {
    this.#set({ kind: "healthy" });
    this.#healed.abort(new Error("the connection was lost"));
    this.#healed = new AbortController();
  }

  get state(): Mode["kind"] {
    return this.#mode.kind;
  }

  /** Does `call` under the present fault. */
  async pass<T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#answersLeft > 0) {
      this.#answersLeft--;
      return call();
    }
    const mode = this.#mode;
    const healed = this.#healed.signal;
    if (mode.kind === "hole") return hang(signal);
    if (mode.kind === "cut") return hang(healed, signal);
    if (mode.kind === "slow") await sleep(systemClock, mode.delayMs, signal ?? healed);
    const answer = await call();
    return mode.kind === "deaf" ? hang(healed, signal) : answer;
  }

  #set(mode: Mode, after = 0): void {
    this.#mode = mode;
    this.#answersLeft = after;
  }
}

function hang(...sources: (AbortSignal | undefined)[]): Promise<never> {
  return new Promise((_, reject) => {
    const unlinks: (() => void)[] = [];
    for (const source of sources.filter((one) => one !== undefined)) {
      const unlink = onAbort(source, () => {
        unlinks.forEach((off) => off());
        reject(source.reason);
      });
      unlinks.push(unlink);
    }
  });
}

/** A record store behind a fault switch. Its watch stays as it is: watches are hints, and prove nothing. */
export function faultyStore<R>(store: RecordStore<R>, faults: FaultSwitch): RecordStore<R> {
  const { watch, abandoned } = store;
  const through = <T>(options: CallOptions, call: () => Promise<T>): Promise<T> =>
    faults.pass(call, options.signal);
  return {
    read: (key, options) => through(options, () => store.read(key, options)),
    write: (key, expected, record, options) =>
      through(options, () => store.write(key, expected, record, options)),
    ...(watch && { watch: (key, wake, options) => watch.call(store, key, wake, options) }),
    ...(abandoned && { abandoned: (key, version, options) => abandoned.call(store, key, version, options) }),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
