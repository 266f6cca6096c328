/** What a peer and whoever started it say to each other. */
import { isObject } from "../wire.js";
import { ALGORITHMS } from "../choices.js";
import type { Algorithm } from "../choices.js";

/** To a peer, once it is ready. */
export interface Orders {
  readonly name: string;
  readonly ttlMs: number;
  /** Where its journal is. */
  readonly directory: string;
  /** For each algorithm that it takes part in: all peers, and where this one reaches the others. */
  readonly parts: readonly Part[];
}

export interface Part {
  readonly algorithm: Algorithm;
  readonly peers: readonly string[];
  readonly dial: Readonly<Record<string, string>>;
}

/** What a voter has on its disk, and what it has promised. */
export interface Ballot {
  readonly term: string;
  /** For whom it voted in that term; `null`: for nobody. */
  readonly vote: string | null;
  /** Whose beat it acknowledged in that term, if that is not whom it voted for. */
  readonly leader: string | null;
  /** Whom it has promised not to help another, and for how long from now. */
  readonly promised: { readonly to: string; readonly leftMs: number } | null;
  /** Why it takes no part. */
  readonly unfit: string | null;
}

/** From a peer. `at`: epoch milliseconds, with fraction. */
export type Word =
  | { readonly kind: "ready" }
  | {
      readonly kind: "elected" | "lease";
      readonly algorithm: Algorithm;
      readonly at: number;
      readonly token: string;
      /** How long it may act from `at` on. */
      readonly remainingMs: number;
    }
  | {
      readonly kind: "ended";
      readonly algorithm: Algorithm;
      readonly at: number;
      readonly token: string;
      readonly reason: string;
    }
  /** Whom it takes for the leader. */
  | { readonly kind: "follows"; readonly algorithm: Algorithm; readonly leader: string | null }
  | ({ readonly kind: "ballot"; readonly at: number } & Ballot)
  /** A line for people. */
  | { readonly kind: "says"; readonly algorithm: Algorithm; readonly text: string };

export function isOrders(message: unknown): message is Orders {
  if (!isObject(message)) return false;
  const { name, ttlMs, directory, parts } = message;
  return (
    typeof name === "string" &&
    Number.isFinite(ttlMs) &&
    typeof directory === "string" &&
    Array.isArray(parts) &&
    parts.every(isPart)
  );
}

function isPart(part: unknown): boolean {
  if (!isObject(part)) return false;
  const { algorithm, peers, dial } = part;
  return isAlgorithm(algorithm) && Array.isArray(peers) && peers.every(isText) && isObject(dial);
}

export function isWord(message: unknown): message is Word {
  if (!isObject(message)) return false;
  const { kind, algorithm, at, token, remainingMs, reason, text, leader } = message;
  switch (kind) {
    case "ready":
      return true;
    case "elected":
    case "lease":
      return isAlgorithm(algorithm) && isToken(token) && [at, remainingMs].every(Number.isFinite);
    case "ended":
      return isAlgorithm(algorithm) && isToken(token) && Number.isFinite(at) && isText(reason);
    case "follows":
      return isAlgorithm(algorithm) && isTextOrNull(leader);
    case "ballot":
      return Number.isFinite(at) && isBallot(message);
    case "says":
      return isAlgorithm(algorithm) && isText(text);
    default:
      return false;
  }
}

function isBallot({ term, vote, leader, promised, unfit }: Record<string, unknown>): boolean {
  const isPromise =
    promised === null ||
    (isObject(promised) && isText(promised["to"]) && Number.isFinite(promised["leftMs"]));
  return isToken(term) && [vote, leader, unfit].every(isTextOrNull) && isPromise;
}

function isAlgorithm(value: unknown): value is Algorithm {
  return (ALGORITHMS as readonly unknown[]).includes(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || isText(value);
}

function isToken(token: unknown): token is string {
  return isText(token) && /^[0-9]{1,30}$/.test(token);
}
