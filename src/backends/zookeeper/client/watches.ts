/** Watches of one connection. Each fires once, at a change or at the end of the connection: in both cases the caller looks again. */
import type { WatchEvent } from "./messages.js";

/** What a watch is on: a node and its data, or the list of its children. */
export type WatchKind = "data" | "children";

const CHILDREN_CHANGED = 4;
const DELETED = 2;

export class Watches {
  readonly #data = new Map<string, Set<() => void>>();
  readonly #children = new Map<string, Set<() => void>>();
  #ended = false;

  add(kind: WatchKind, path: string, wake: () => void): void {
    if (this.#ended) return wake();
    const map = kind === "data" ? this.#data : this.#children;
    const waiting = map.get(path) ?? new Set();
    map.set(path, waiting);
    waiting.add(wake);
  }

  fire({ type, path }: WatchEvent): void {
    // A deleted node fires both kinds at once, in one event.
    if (type === CHILDREN_CHANGED || type === DELETED) this.#wake(this.#children, path);
    if (type > 0 && type !== CHILDREN_CHANGED) this.#wake(this.#data, path);
  }

  end(): void {
    this.#ended = true;
    for (const map of [this.#data, this.#children]) for (const path of [...map.keys()]) this.#wake(map, path);
  }

  #wake(map: Map<string, Set<() => void>>, path: string): void {
    const waiting = map.get(path);
    map.delete(path);
    for (const wake of waiting ?? []) wake();
  }
}
