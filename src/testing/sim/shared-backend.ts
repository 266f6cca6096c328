/** One backend for all elections of a process, as programs have it where many share a lease or a session. */
import type { Backend } from "../../seam/backend.js";
import type { SimClock } from "./clock.js";
import type { Link } from "./network.js";
import { closeBackend } from "./store-parts.js";
import type { Connection } from "./store-parts.js";

/** The backend, with a clock of its own. */
export interface Shared {
  users: number;
  readonly clock: SimClock;
  readonly link: Link;
  readonly backend: Backend;
}

export function share(shared: Shared, forget: () => void): Connection {
  const { backend, clock, link } = shared;
  shared.users++;
  const close = async (late: (what: string) => void): Promise<void> => {
    if (--shared.users > 0) return;
    forget();
    await closeBackend(backend, link, late);
    if (clock.pending > 0) late(`${clock.pending} timers of the backend are still set`);
    clock.retired = late;
  };
  return { backend, traffic: link, close };
}
