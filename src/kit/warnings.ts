/** What the operator of a store should know: each said once, to the first who listens, also if it listens later. */
export class Warnings {
  readonly #said = new Set<string>();
  readonly #pending: string[] = [];
  #listener: ((message: string) => void) | undefined;

  add(message: string): void {
    if (this.#said.has(message)) return;
    this.#said.add(message);
    if (this.#listener === undefined) this.#pending.push(message);
    else this.#listener(message);
  }

  /** One listens at a time: a backend serves thousands of elections, and a warning is about the store. */
  listen(listener: (message: string) => void): void {
    if (this.#listener !== undefined) return;
    this.#listener = listener;
    for (const message of this.#pending.splice(0)) listener(message);
  }
}
