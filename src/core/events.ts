/**
 * Typed events. A listener is told, never asked: it runs apart from the code
 * that emits, and what it throws is reported, not propagated. The same events go
 * to `diagnostics_channel` under `conclave:<event>`.
 */
import { channel } from "node:diagnostics_channel";
import type { Guarantees, Leader } from "./backend.js";
import { describe } from "./errors.js";
import { printable } from "./printable.js";
import type { Term, TermEnd } from "./term.js";

/** What an {@link Election} tells its listeners. */
export interface ElectionEvents {
  /** A term has begun, after this long a wait. */
  elected: {
    readonly term: Term;
    readonly waitedMs: number;
    /** What the backend promises about this leadership. */
    readonly guarantees: Guarantees;
  };
  /** A term is over: exactly one for each `elected`. */
  ended: { readonly term: Term; readonly end: TermEnd };
  /** Renewals fail, but the deadline has not passed: still in office, perhaps not for long. */
  jeopardy: { readonly term: Term; readonly error: unknown };
  /** A renewal succeeded again. */
  safe: { readonly term: Term };
  /** One try to renew, for metrics. `remainingMs` is what was left when the answer came. */
  renewal: {
    readonly term: Term;
    readonly ok: boolean;
    readonly latencyMs: number;
    readonly remainingMs: number;
  };
  /** Who leads, whenever it changes; `null` = nobody. Followed only while someone listens. */
  leader: { readonly leader: Leader | null };
  /** Something went wrong and is being dealt with. Nobody has to listen. */
  error: { readonly error: unknown };
}

/** Name of an event of an {@link Election}. */
export type EventName = keyof ElectionEvents;
/** A function that is told of one kind of event. */
export type Listener<E extends EventName> = (event: ElectionEvents[E]) => void;

/** `console` and pino fit. Messages are single lines without secrets. */
export interface Logger {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

type Listeners = { [E in EventName]: Set<Listener<E>> };

function nobody(): Listeners {
  return {
    elected: new Set(),
    ended: new Set(),
    jeopardy: new Set(),
    safe: new Set(),
    renewal: new Set(),
    leader: new Set(),
    error: new Set(),
  };
}

export class Emitter {
  readonly #election: string;
  readonly #candidate: string;
  readonly #logger: Logger | undefined;
  /** Made when somebody listens: most elections of a process with thousands are never listened to. */
  #listeners: Listeners | undefined;

  constructor(election: string, candidate: string, logger: Logger | undefined) {
    this.#election = election;
    this.#candidate = candidate;
    this.#logger = logger;
  }

  on<E extends EventName>(name: E, listener: Listener<E>): () => void {
    const listeners = (this.#listeners ??= nobody())[name];
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  count(name: EventName): number {
    return this.#listeners?.[name].size ?? 0;
  }

  emit<E extends EventName>(name: E, event: ElectionEvents[E]): void {
    const diagnostics = channel(`conclave:${name}`);
    if (diagnostics.hasSubscribers) {
      diagnostics.publish({ election: this.#election, candidate: this.#candidate, ...event });
    }
    for (const listener of this.#listeners?.[name] ?? []) void this.#tell(listener, event);
  }

  log(level: keyof Logger, message: string): void {
    try {
      this.#logger?.[level](printable(`election "${this.#election}": ${message}`));
    } catch {
      // A broken logger is no reason to lose an office.
    }
  }

  /** In a microtask: the emitter's state is settled before anyone reacts to it. */
  async #tell<E extends EventName>(listener: Listener<E>, event: ElectionEvents[E]): Promise<void> {
    await Promise.resolve();
    try {
      await (listener(event) as unknown);
    } catch (error) {
      this.log("error", `a listener threw: ${describe(error)}`);
    }
  }
}
