/** Process numbers are handed out in turn, and begin anew when the highest is reached. */
import { pidLimit } from "./procfs.js";

/** More new numbers than this: a read of all /proc is cheaper. */
const LONGEST_RANGE = 32_768;

/** Numbers in turn from the one after `from` to `to`. `undefined`: too many. */
export function rangeOf(from: number, to: number): number[] | undefined {
  const limit = to < from ? pidLimit() : Number.MAX_SAFE_INTEGER;
  if (limit === undefined) return undefined;
  const length = to >= from ? to - from : limit - 1 - from + to;
  if (length < 0 || length > LONGEST_RANGE) return undefined;
  return Array.from({ length }, (_, index) => {
    const pid = from + 1 + index;
    return pid < limit ? pid : pid - limit + 1;
  });
}

/** Whether `pid` was handed out after `from`, and not after `to`. */
export function isBetween(from: number, pid: number, to: number): boolean {
  return from <= to ? from < pid && pid <= to : pid > from || pid <= to;
}
