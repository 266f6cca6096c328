/** Watches of the modelled ZooKeeper. Each fires once, when its machine's server learns of the change. */
export type Wake = () => void;

export class OneTimeWatches {
  /** By what they are on. */
  readonly #watches = new Map<string, Set<{ readonly wake: Wake; readonly machine: string }>>();
  readonly #isSilent: (machine: string) => boolean;

  /** `isSilent`: the server of this machine does not know of changes yet. */
  constructor(isSilent: (machine: string) => boolean) {
    this.#isSilent = isSilent;
  }

  add(what: string, wake: Wake, machine: string): void {
    const watches = this.#watches.get(what) ?? new Set();
    this.#watches.set(what, watches);
    watches.add({ wake, machine });
  }

  fire(...whats: string[]): void {
    for (const what of whats) {
      const watches = this.#watches.get(what) ?? new Set();
      this.#watches.delete(what);
      for (const watch of watches) {
        if (this.#isSilent(watch.machine)) this.add(what, watch.wake, watch.machine);
        else watch.wake();
      }
    }
  }
}
