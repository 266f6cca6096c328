/**
 * A stop for something that lives long and is rarely stopped. It does what an
 * AbortController does, but makes its signals for single calls and drops them
 * afterwards: a signal with a listener takes half a kilobyte for as long as it
 * lives, and one process may keep ten thousand terms.
 */
export class Halt {
  #stop: { readonly reason: unknown } | undefined;
  #links: Set<AbortController> | undefined;

  get halted(): boolean {
    return this.#stop !== undefined;
  }

  /** For good. The first reason counts. */
  halt(reason?: unknown): void {
    if (this.#stop !== undefined) return;
    this.#stop = { reason };
    for (const controller of this.#links ?? []) controller.abort(reason);
  }

  /** A controller that is aborted with this, until `unlink`. */
  link(): { readonly controller: AbortController; readonly unlink: () => void } {
    const controller = new AbortController();
    if (this.#stop !== undefined) {
      controller.abort(this.#stop.reason);
      return { controller, unlink: () => {} };
    }
    const links = (this.#links ??= new Set());
    links.add(controller);
    const unlink = (): void => {
      links.delete(controller);
      if (links.size === 0 && this.#links === links) this.#links = undefined;
    };
    return { controller, unlink };
  }

  /** Makes one call that ends with this. */
  async during<T>(call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { controller, unlink } = this.link();
    try {
      return await call(controller.signal);
    } finally {
      unlink();
    }
  }
}
