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
  /** The token of whoever holds leadership by the store's own truth, if somebody does. */
  token(): bigint | undefined;
}

/** What one connection has met in the store. */
export class Account {
  /** By holder: a candidate may meet its own grant before the answer that grants it. */
  readonly #highest = new Map<string, bigint>();
  /** Terms of which the exact token has been delivered. */
  readonly #known = new Set<string>();
  /** Terms that were met only while their token could not be read. */
  readonly #misled = new Set<string>();
  /** Versions that stood in for the tokens of those. */
  readonly #stoodIn = new Set<bigint>();
  #excuses = 0;

  meet({ holder, token }: Sighting): void {
    if (token > this.highestOf(holder)) this.#highest.set(holder, token);
  }

  /** A term of which the store tells the token only as long as nobody damages it. */
  meetTerm(term: string, exact: boolean, version: bigint): void {
    if (exact) this.#known.add(term);
    if (this.#known.has(term)) return;
    if (!this.#misled.has(term)) this.#excuses++;
    this.#misled.add(term);
    this.#stoodIn.add(version);
  }

  /** Whether this version was shown in place of a token that nobody could read. */
  stoodIn(version: bigint): boolean {
    return this.#stoodIn.has(version);
  }

  /** Once for each term whose token could not be read at first, an observer is told of a regression that is none. */
  excuse(): boolean {
    return this.#excuses > 0 && this.#excuses-- > 0;
  }

  /** The highest token of all candidates but this one. */
  highestExcept(candidate: string | undefined): bigint {
    let highest = -1n;
    for (const [holder, token] of this.#highest) if (holder !== candidate && token > highest) highest = token;
    return highest;
  }

  highestOf(holder: string): bigint {
    return this.#highest.get(holder) ?? -1n;
  }

  forgive(): void {
    this.#highest.clear();
  }
}

/** A candidate that holds a token, as a read shows it. */
export interface Sighting {
  readonly holder: string;
  readonly token: bigint;
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

  met(process: SimProcess, _election: string, candidate: string | undefined): bigint {
    return this.#accounts.get(process)?.highestExcept(candidate) ?? -1n;
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
