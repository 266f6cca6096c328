/**
 * The store as one node of the demo reaches it: real files, until the line is
 * cut. Then calls hang, as they do when a network is gone, and fail when it is
 * back: what was under way at the cut does not happen later.
 */
import type { FileRead, FileSystem } from "../backends/file/fs.js";
import { nodeFileSystem } from "../backends/file/node-fs.js";

export class CuttableFileSystem implements FileSystem {
  readonly #inner: FileSystem;
  readonly #hanging = new Set<() => void>();
  readonly #wakers = new Set<() => void>();
  #cut = false;
  #calls = 0;

  constructor(inner: FileSystem = nodeFileSystem) {
    this.#inner = inner;
  }

  /** Calls since this was asked last. */
  takeCalls(): number {
    const calls = this.#calls;
    this.#calls = 0;
    return calls;
  }

  cut(): void {
    this.#cut = true;
  }

  heal(): void {
    if (!this.#cut) return;
    this.#cut = false;
    for (const fail of this.#hanging) fail();
    this.#hanging.clear();
    for (const wake of this.#wakers) wake();
  }

  list(directory: string): Promise<string[]> {
    return this.#call(() => this.#inner.list(directory));
  }

  assertDirectory(path: string): Promise<void> {
    return this.#call(() => this.#inner.assertDirectory(path));
  }

  mark(path: string): Promise<string | null> {
    return this.#call(() => this.#inner.mark(path));
  }

  read(path: string, limitBytes: number): Promise<FileRead | null> {
    return this.#call(() => this.#inner.read(path, limitBytes));
  }

  create(path: string, data: Uint8Array, durable: boolean): Promise<string> {
    return this.#call(() => this.#inner.create(path, data, durable));
  }

  rewrite(path: string, data: Uint8Array, durable: boolean): Promise<string | null> {
    return this.#call(() => this.#inner.rewrite(path, data, durable));
  }

  rename(from: string, to: string): Promise<boolean> {
    return this.#call(() => this.#inner.rename(from, to));
  }

  link(from: string, to: string): Promise<boolean> {
    return this.#call(() => this.#inner.link(from, to));
  }

  syncDirectory(directory: string): Promise<void> {
    return this.#call(() => this.#inner.syncDirectory(directory));
  }

  remove(path: string): Promise<void> {
    return this.#call(() => this.#inner.remove(path));
  }

  makeDirectory(path: string): Promise<void> {
    return this.#call(() => this.#inner.makeDirectory(path));
  }

  async watch(directory: string, wake: (name?: string) => void, signal: AbortSignal): Promise<void> {
    const again = (): void => wake();
    this.#wakers.add(again);
    try {
      await this.#inner.watch(directory, (name) => void (this.#cut || wake(name)), signal);
    } finally {
      this.#wakers.delete(again);
    }
  }

  async #call<T>(call: () => Promise<T>): Promise<T> {
    this.#calls++;
    if (this.#cut) await this.#hang();
    return call();
  }

  #hang(): Promise<never> {
    return new Promise((_, reject) => {
      this.#hanging.add(() => reject(new Error("cut off from the store")));
    });
  }
}
