/** What is demanded of a backend before an election begins on it: what it does not promise, its users must have accepted. */
import type { Backend } from "../seam/backend.js";
import { invalid } from "../kit/errors.js";
import { storeText } from "../kit/where.js";
import { noteStore } from "./one-store.js";
import type { Reports } from "../law/reports.js";

/** Without types a URL is easily given here. It is not repeated: it may hold a password. */
export function checkBackend(backend: unknown): Backend {
  if (typeof backend === "object" && backend !== null && "campaign" in backend) return backend as Backend;
  if (backend instanceof Promise)
    throw invalid(
      "backend is a promise: write `await openBackend(…)`, or hand the URL to openElection() or openLock()",
    );
  throw invalid(
    `backend must be a backend object, got ${backend === null ? "null" : typeof backend}; ` +
      `for a URL use openElection({ name, backend: url }) or openLock({ name, backend: url })`,
  );
}

/** A backend whose leaderships have no fencing token is refused unless the user says that this is meant. */
export function checkFenced(backend: Backend, allowUnfenced: boolean | undefined): void {
  if (backend.guarantees.token !== "unfenced" || allowUnfenced === true) return;
  throw invalid(
    `the backend "${backend.name}" gives no fencing tokens: a network partition can leave two leaders, and no resource ` +
      "can refuse the older one. Use another backend, or set allowUnfenced: true (--allow-unfenced) to accept that",
  );
}

/** Logs where a candidate campaigns, and what its user should know of that store. */
export function announce(election: string, backend: Backend, events: Reports): void {
  events.log("info", `campaigning on ${storeText(backend)}`);
  const wrong = noteStore(election, backend);
  if (wrong !== undefined) events.log("warn", wrong);
  logWarnings(backend, events);
}

const warned = new WeakSet<Backend>();

/** Logs once for each backend that it excludes two leaders by best effort only, and what it finds wrong with its store. */
function logWarnings(backend: Backend, events: Reports): void {
  if (warned.has(backend)) return;
  warned.add(backend);
  backend.onWarning?.((message) => events.log("warn", message));
  if (backend.guarantees.exclusion !== "best-effort") return;
  events.log(
    "warn",
    `the backend "${backend.name}" excludes two leaders by best effort only: a failover of the store can grant ` +
      "leadership twice. Fence what must not be done twice (docs/guide/fencing.md)",
  );
}
