/**
 * Faults between a backend and its store. The suite asks for them by these four
 * names; a backend's author says what they mean for the store. For a server:
 * {@link faultProxy}. For a store in the process: {@link FaultSwitch}.
 */
import type { CallOptions, RecordStore } from "../../core/backend.js";
import { systemClock } from "../../core/clock.js";
import { onAbort, sleep } from "../../core/waiting.js";

export interface Faults {
  /** From now on no request reaches the store; requests hang or fail. */
  cut?(): void | Promise<void>;
  /** From now on requests reach the store and take effect, but no answer comes back. */
  deafen?(): void | Promise<void>;
  /** From now on every request is this long on its way to the store. */
  slow?(delayMs: number): void | Promise<void>;
  /** Ends all of these, and waits until the store answers again. */
  heal(): void | Promise<void>;
}

type Mode =
  | { readonly kind: "healthy" }
  | { readonly kind: "cut" }
  | { readonly kind: "deaf" }
  | { readonly kind: "slow"; readonly delayMs: number };

/** One switch for all calls that go through {@link FaultSwitch.pass}. */
export class FaultSwitch implements Required<Faults> {
  #mode: Mode = { kind: "healthy" };
  #healed = new AbortController();

  cut(): void {
    this.#mode = { kind: "cut" };
  }

  deafen(): void {
    this.#mode = { kind: "deaf" };
  }

  slow(delayMs: number): void {
    this.#mode = { kind: "slow", delayMs };
  }

  /** Calls that hang are answered with a fault: what became of them stays unknown. */
  heal(): void {
    this.#mode = { kind: "healthy" };
    this.#healed.abort(new Error("the connection was lost"));
    this.#healed = new AbortController();
  }

  get state(): Mode["kind"] {
    return this.#mode.kind;
  }

  /** Does `call` under the present fault. */
  async pass<T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const mode = this.#mode;
    const healed = this.#healed.signal;
    if (mode.kind === "cut") return hang(healed, signal);
    if (mode.kind === "slow") await sleep(systemClock, mode.delayMs, signal ?? healed);
    const answer = await call();
    return mode.kind === "deaf" ? hang(healed, signal) : answer;
  }
}

function hang(healed: AbortSignal, signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const unlinks: (() => void)[] = [];
    for (const source of signal ? [healed, signal] : [healed]) {
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
