/**
 * A mark that every descendant of the command inherits and that anyone may
 * read: a hard limit of file locks that no other command has. The kernel has
 * not applied this limit since Linux 2.4, so it changes nothing for the
 * command. Unlike the environment it stays readable when a process clears its
 * environment or makes itself undumpable (ssh-agent), and a process without
 * privileges cannot raise it again.
 *
 * A limit can only be lowered. So a mark owns a range of values below it, and an
 * `exec` inside another takes a value from the range of the outer one: its
 * processes carry both marks.
 */
import { randomInt } from "node:crypto";

/** Sizes of the ranges of an exec, of an exec inside it, and of one inside that. */
const SIZES = [2n ** 24n, 2n ** 8n, 1n] as const;
/** The outermost value is a multiple of the first size, and below 2^63. */
const OUTERMOST = 2 ** 39;

/** A new mark for a process whose own limit is `inherited` (`null`: unlimited). `undefined`: none fits below it. */
export function newLimitMark(inherited: bigint | null): bigint | undefined {
  const [outer, middle] = SIZES;
  if (inherited === null) return BigInt(randomInt(2 ** 38, OUTERMOST)) * outer;
  // A limit that somebody else has set says nothing about ranges.
  if (inherited < BigInt(2 ** 38) * outer - outer) return undefined;
  if (inherited % outer === 0n) return inherited - BigInt(randomInt(1, Number(outer / middle))) * middle;
  if (inherited % middle === 0n) return inherited - BigInt(randomInt(1, Number(middle)));
  return undefined;
}

/** Whether a process with this limit carries `mark`, or the mark of an exec inside. */
export function carriesLimit(limit: bigint | null, mark: bigint): boolean {
  if (limit === null) return false;
  const size = SIZES.find((step) => mark % step === 0n)!;
  return limit <= mark && limit > mark - size;
}
