/** For a flag that does not exist, the one that was probably meant. */
import type { Command } from "commander";

const MOST_EDITS = 3;

/** Of both names a flag may have, the nearest to what was written. `undefined`: none is near. */
export function similarFlag(command: Command, written: string): string | undefined {
  const options = command.createHelp().visibleOptions(command);
  const flags = options
    .flatMap(({ short, long }) => [short, long])
    .filter((flag) => flag?.startsWith("--") === true);
  let best: { readonly flag: string; readonly edits: number } | undefined;
  for (const flag of flags as string[]) {
    const edits = distance(written, flag);
    const near = edits <= Math.min(MOST_EDITS, Math.ceil((flag.length - 2) / 2));
    if (near && edits < (best?.edits ?? Number.POSITIVE_INFINITY)) best = { flag, edits };
  }
  return best?.flag;
}

/** Letters to insert, delete, replace or swap with their neighbour to get from one to the other. */
function distance(from: string, to: string): number {
  const row = (i: number): number[] =>
    Array.from({ length: to.length + 1 }, (_, j) => (i === 0 ? j : j === 0 ? i : 0));
  let before: number[] = [];
  let last = row(0);
  for (let i = 1; i <= from.length; i++) {
    const next = row(i);
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1] ? 0 : 1;
      next[j] = Math.min(last[j]! + 1, next[j - 1]! + 1, last[j - 1]! + same);
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      if (swapped) next[j] = Math.min(next[j]!, before[j - 2]! + 1);
    }
    [before, last] = [last, next];
  }
  return last[to.length]!;
}
