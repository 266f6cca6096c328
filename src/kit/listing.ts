/** Lists of elections: what a store shows is checked, sorted and bounded. */
import type { Listing } from "../seam/backend.js";
import { checkName } from "./names.js";

/** Names that one listing holds at most, and keys that are looked at for it. */
export const MOST_LISTED = 10_000;

/** Names that no election can have are left out: somebody else put them there. `complete`: the store had no more. */
export function listing(names: Iterable<string>, complete: boolean): Listing {
  const valid = new Set<string>();
  for (const name of names) if (isName(name)) valid.add(name);
  const sorted = [...valid].sort();
  return { names: sorted.slice(0, MOST_LISTED), complete: complete && sorted.length <= MOST_LISTED };
}

function isName(name: string): boolean {
  try {
    checkName(name);
    return true;
  } catch {
    return false;
  }
}
