/**
 * What a store of records loses when it is wiped or restored, and which tokens
 * each process had met in it: the simulator's own account, by the answers that
 * reached the process, of what a candidate must have seen.
 */
import type { SimProcess } from "./node.js";
import type { StoreMemory } from "./store-parts.js";

export interface Forgetful {
  wipe(): void;
  /** Returns how to go back to this moment. */
  backUp(): () => void;
  raise(): void;
  /** The token of whoever holds the office by the store's own truth, if somebody does. */
  token(): bigint | undefined;
}

/** The highest token that one connection has met. */
export class Account {
  highest = -1n;

  meet(token = -1n): void {
    if (token > this.highest) this.highest = token;
  }

  forgive(): void {
    this.highest = -1n;
  }
}

export class RecordMemory implements StoreMemory {
  readonly #store: Forgetful;
  readonly #forgotten = new Set<bigint>();
  /** Of the last connection of each process: what an earlier one still hears of is nobody's. */
  readonly #accounts = new WeakMap<SimProcess, Account>();

  constructor(store: Forgetful) {
    this.#store = store;
  }

  wipe(): void {
    this.#lose(() => this.#store.wipe());
  }

  backUp(): () => void {
    const goBack = this.#store.backUp();
    return () => this.#lose(goBack);
  }

  raise(): void {
    this.#lose(() => this.#store.raise());
  }

  forgot(token: bigint): boolean {
    return this.#forgotten.has(token) && this.#store.token() !== token;
  }

  /** The account of a new connection: to be told of every token that an answer brings to it. */
  connect(process: SimProcess): Account {
    const account = new Account();
    this.#accounts.set(process, account);
    return account;
  }

  met(process: SimProcess): bigint {
    return this.#accounts.get(process)?.highest ?? -1n;
  }

  forgive(process: SimProcess): void {
    this.#accounts.get(process)?.forgive();
  }

  #lose(change: () => void): void {
    const before = this.#store.token();
    change();
    if (before !== undefined && this.#store.token() !== before) this.#forgotten.add(before);
  }
}
