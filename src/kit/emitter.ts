/**
 * Typed events. A listener runs apart from the code
 * that emits, and what it throws is reported, not propagated. The same events go
 * to `diagnostics_channel`, under the prefix and the name of the event.
 */
import { channel } from "node:diagnostics_channel";

/** A listener, by the name of its event. */
type EventListener<Events, E extends keyof Events> = (event: Events[E]) => void;

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
    return this.count(name) > 0 || channel(`${this.prefix}${name}`).hasSubscribers;
  }

  emit<E extends keyof Events & string>(name: E, event: Events[E]): void {
    const diagnostics = channel(`${this.prefix}${name}`);
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
