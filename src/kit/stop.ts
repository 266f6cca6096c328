/**
 * The source of a {@link Stop}, and the stop itself, in one object: a small
 * replacement for AbortController inside the library. An AbortSignal with a
 * listener takes about a kilobyte for as long as it lives, and one process may
 * hold ten thousand terms.
 */
import type { Stop } from "../seam/stop.js";

export type { Stop } from "../seam/stop.js";

export class StopSource implements Stop {
  #stopped: { reason: unknown } | undefined;
  #listeners: Set<() => void> | undefined;
  #controller: AbortController | undefined;

  /** The same as an AbortSignal, for those who need a real one. Made when it is asked for: that takes as long as half a request. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#stopped !== undefined) this.#controller.abort(this.reason);
    }
    return this.#controller.signal;
  }

  get aborted(): boolean {
    return this.#stopped !== undefined;
  }

  /** Without a reason, the error is created lazily: an Error captures a stack and most callers never read it. */
  get reason(): unknown {
    if (this.#stopped === undefined) return undefined;
    return (this.#stopped.reason ??= new DOMException("This operation was aborted", "AbortError"));
  }

  /** Cannot be undone. The first reason counts. Listeners must not throw. */
  stop(reason?: unknown): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = { reason };
    this.#controller?.abort(this.reason);
    for (const listener of this.#listeners ?? []) listener(); // a set skips those that are removed meanwhile
    this.#listeners = undefined;
  }

  /** Each is called once, unless it is removed before. */
  addEventListener(_type: "abort", listener: () => void): void {
    if (this.#stopped === undefined) (this.#listeners ??= new Set()).add(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    this.#listeners?.delete(listener);
    if (this.#listeners?.size === 0 && !this.aborted) this.#listeners = undefined;
  }
}
