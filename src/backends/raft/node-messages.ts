/** What nodes ask each other at their start, and what processes that are no voters ask a node to do. */
import type { Versioned } from "./register.js";

/** Everything a voter that lost its disk must know, a page at a time. */
export interface StateRequest {
  readonly kind: "state";
  readonly part: "votes" | "registers";
  /** The last name of the page before. */
  readonly after?: string | undefined;
}

export interface StateAnswer {
  readonly kind: "state";
  /** The id of its journal. */
  readonly birth: string;
  /** Whether it takes part. */
  readonly started: boolean;
  /** Birth ids of all voters at its first start, if it took part in one. */
  readonly births: readonly string[];
  readonly wall: number;
  readonly seed: bigint;
  readonly votes: readonly { readonly name: string; readonly term: bigint; readonly leaseMs: number }[];
  readonly ballots: readonly { readonly name: string; readonly ballot: bigint }[];
  /** There are more: ask again, after this name. */
  readonly next?: string | undefined;
  readonly unfit?: string | undefined;
}

/** Reads a record in the name of a process that is no voter. */
export interface ReadRequest {
  readonly kind: "read";
  readonly key: string;
}

export interface WriteRequest {
  readonly kind: "write";
  readonly key: string;
  readonly expected: bigint | null;
  readonly text: string;
}

export interface EntryAnswer {
  readonly kind: "entry";
  readonly entry: Versioned | null;
  /** The voter takes no part: certainly nothing was done. */
  readonly unfit?: string | undefined;
  /** It is not known what became of it, and why. */
  readonly unknown?: string | undefined;
}

export type NodeRequest = StateRequest | ReadRequest | WriteRequest;
export type NodeAnswer = StateAnswer | EntryAnswer;
