/**
 * One name, one store. Candidates of one name that use different stores do not
 * compete: each of them leads. Within a process that can be noticed, and is
 * nearly always a mistake in the configuration.
 */
import type { Backend } from "../seam/backend.js";
import { storeText, whereOf } from "../kit/where.js";

/** Names are unbounded: of more than this the oldest are forgotten, and no longer compared. */
const MOST_NAMES = 10_000;
const stores = new Map<string, WeakRef<Backend>>();
/** One for each backend, however many elections it has. */
const references = new WeakMap<Backend, WeakRef<Backend>>();

function referenceTo(backend: Backend): WeakRef<Backend> {
  let reference = references.get(backend);
  if (reference === undefined) references.set(backend, (reference = new WeakRef(backend)));
  return reference;
}

/** Notes that a candidate of this name campaigns on this store. Returns what is wrong with that, if anything is. */
export function noteStore(election: string, backend: Backend): string | undefined {
  const other = stores.get(election)?.deref();
  if (other === undefined) {
    stores.set(election, referenceTo(backend));
    if (stores.size > MOST_NAMES) {
      const [oldest] = stores.keys();
      if (oldest !== undefined) stores.delete(oldest);
    }
    return undefined;
  }
  if (!differ(other, backend)) return undefined;
  return (
    `this process has candidates of this name on two stores (${storeText(other)}; ${storeText(backend)}): ` +
    "they do not compete, and each store has a leader of its own. Use one store, or two names"
  );
}

/** No candidate of this backend campaigns under this name any more. */
export function forgetStore(election: string, backend: Backend): void {
  if (stores.get(election)?.deref() === backend) stores.delete(election);
}

/** Whether they are certainly different, as far as names and URLs tell. Two objects may well be one store. */
function differ(a: Backend, b: Backend): boolean {
  if (a === b) return false;
  // While a fleet moves, `both(old, next)` competes on either store.
  const parts = (backend: Backend): string[] => backend.name.split("-and-");
  if (!parts(a).some((part) => parts(b).includes(part))) return true;
  const [one, other] = [whereOf(a), whereOf(b)];
  return a.name === b.name && one !== undefined && other !== undefined && one !== other;
}
