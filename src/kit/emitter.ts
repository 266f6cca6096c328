/**
 * Typed events. A listener runs apart from the code
 * that emits, and what it throws is reported, not propagated. The same events go
 * to `diagnostics_channel`, under the prefix and the name of the event.
 */
import { type Channel, channel } from "node:diagnostics_channel";

/** A listener, by the name of its event. */
type EventListener<Events, E extends keyof Events> = (event: Events[E]) => void;

/** By prefix and name of the event. Found without building a name: thousands of terms ask for theirs at every renewal. */
const channels = new Map<string, Map<string, Channel>>();

function channelOf(prefix: string, name: string): Channel {
  let named = channels.get(prefix);
  if (named === undefined) channels.set(prefix, (named = new Map<string, Channel>()));
  let found = named.get(name);
  if (found === undefined) named.set(name, (found = channel(`${prefix}${name}`)));
  return found;
}

export abstract class Emitter<Events extends object> {
  /** Made when somebody listens: most elections of a process with thousands are never listened to. */
  #listeners: { [E in keyof Events]?: Set<EventListener<Events, E>> } | undefined;

  /** Of the names of its diagnostics channels. */
  protected abstract get prefix(): string;
  /** Published with every event: whose it is. */
  protected abstract get source(): object;
  /** A listener threw. */
  protected abstract threw(error: unknown): void;

  on<E extends keyof Events & string>(name: E, listener: EventListener<Events, E>): () => void {
    this.#listeners ??= {};
    const listeners = (this.#listeners[name] ??= new Set());
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  count(name: keyof Events): number {
    return this.#listeners?.[name]?.size ?? 0;
  }

  /** Whether there is a listener. */
  hears(name: keyof Events & string): boolean {
    return this.count(name) > 0 || channelOf(this.prefix, name).hasSubscribers;
  }

  emit<E extends keyof Events & string>(name: E, event: Events[E]): void {
    const diagnostics = channelOf(this.prefix, name);
    if (diagnostics.hasSubscribers) diagnostics.publish({ ...this.source, ...event });
    for (const listener of this.#listeners?.[name] ?? []) void this.#tell(listener, event);
  }

  /** In a microtask: the emitter's state is settled before anyone reacts to it. */
  async #tell<E extends keyof Events>(listener: EventListener<Events, E>, event: Events[E]): Promise<void> {
    await Promise.resolve();
    try {
      await (listener(event) as unknown);
    } catch (error) {
      this.threw(error);
    }
  }
}
