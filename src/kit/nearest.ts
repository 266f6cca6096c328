/** What was probably meant by a name that does not exist. */
const MOST_EDITS = 3;

/** Of the known names the nearest to what was written, at most so many edits away; `undefined`: none is near. */
export function nearest(
  written: string,
  known: Iterable<string>,
  most: number = MOST_EDITS,
): string | undefined {
  let best: { readonly name: string; readonly edits: number } | undefined;
  for (const name of known) {
    const edits = distance(written, name);
    const near = edits <= Math.min(most, Math.ceil(name.replace(/^--/, "").length / 2));
    if (near && edits < (best?.edits ?? Number.POSITIVE_INFINITY)) best = { name, edits };
  }
  return best?.name;
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
