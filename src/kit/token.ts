/** Tokens on the wire and in fences: decimal digits, exact beyond 2^53, and never a megabyte of them. */
import { invalid, StaleLeaderError } from "./errors.js";

const DIGITS = /^[0-9]{1,20}$/;

/** The token a text spells, or `undefined` if it spells none. */
export function parseToken(text: unknown): bigint | undefined {
  return typeof text === "string" && DIGITS.test(text) ? BigInt(text) : undefined;
}

/** What may be used as a token at all. A number is refused: it may have lost its last digits already. */
export function checkToken(token: unknown): bigint {
  if (typeof token !== "bigint" || token < 0n || !DIGITS.test(token.toString())) {
    throw invalid(
      `a fencing token is a bigint of zero or more with at most 20 digits, got ${typeof token} ${String(token)}; pass term.token as it is`,
    );
  }
  return token;
}

/** Older than the newest seen: refused. Equal is the same leader again. */
export function assertFresh(token: bigint, highest: bigint | null): void {
  if (highest !== null && token < highest) throw new StaleLeaderError(token, highest);
}
