/** The elections of a store, for every command that shows all of them: what one shows the others show too. */
import { HISTORY } from "../control/history.js";
import { CONTROL } from "../control/record.js";
import { systemClock } from "../kit/clock.js";
import { isConclaveError } from "../kit/errors.js";
import { recordOwner } from "../kit/names.js";
import { bounded } from "../kit/wait.js";
import { ATTEMPT_MS } from "./controls.js";
import { listed } from "./store.js";
import type { Store } from "./store.js";

/**
 * Those that the store lists, and those it has only records of: some stores keep
 * nothing of an election that nobody leads, and a paused one may have no candidate.
 */
export async function knownElections(store: Store, signal: AbortSignal): Promise<readonly string[]> {
  const names = new Set(await listed(store, signal));
  for (const key of await recordKeys(store, signal)) {
    const name = recordOwner(CONTROL, key) ?? recordOwner(HISTORY, key);
    if (name !== undefined) names.add(name);
  }
  return [...names].sort();
}

async function recordKeys({ backend }: Store, signal: AbortSignal): Promise<readonly string[]> {
  const { records } = backend;
  const { list } = records ?? {};
  if (records === undefined || list === undefined) return [];
  try {
    const found = await bounded(systemClock, ATTEMPT_MS, signal, "listing the records", (limited) =>
      list.call(records, { signal: limited }),
    );
    return found.names;
  } catch (error) {
    // Who may not read records is shown what the store lists.
    if (isConclaveError(error) && error.code === "forbidden") return [];
    throw error;
  }
}
