/**
 * A store of somebody else's in the simulator. Its author brings a model of the
 * server (plain, synchronous code) and the real client code on top of a wire,
 * and the simulator brings clocks, a network and everything that goes wrong.
 */
import type { Backend } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import { Link } from "./network.js";
import { drawRate, Oscillator } from "./oscillator.js";
import { Random } from "./random.js";
import { ordinary, own } from "./store-parts.js";
import type { Store, StoreOptions } from "./store-parts.js";

/** The way of one process to the store. Every request and every push must go over it. */
export interface SimulatedWire {
  /**
   * Sends a request. `serve` runs in the store, at once and alone, if and when
   * the request arrives: never, once, or twice. Its result travels back, unless it
   * is lost. Rejects when the signal aborts, and often before that.
   */
  call<T>(what: string, serve: () => T, signal: AbortSignal): Promise<T>;
  /** Sends a message from the store to the process. `false`: it was lost, and the stream that it belonged to may have broken. */
  notify(run: () => void): boolean;
  /** How old an answer to a read may be, asked once for each read: milliseconds, 0 unless a replica answers. */
  staleness(): number;
}

/** One process that opens a backend on the store. */
export interface SimulatedProcess {
  /** The only time and chance that the client may use. */
  readonly clock: Clock;
  readonly wire: SimulatedWire;
}

/** A store in one simulated world, with all that it remembers. */
export interface SimulatedStore {
  /** Opens the backend of one process, as the author's own code does it, on a wire instead of a connection. */
  connect(process: SimulatedProcess): Backend;
  /** All machines lose power at once, the store's among them. Default: it forgets nothing. */
  losePower?(): void;
}

/** The machine that the store runs on. */
export interface SimulatedHost {
  /** The store's own clock, in milliseconds: it runs a little fast or slow, as every clock does. */
  now(): number;
  /** True time, for a model that answers stale reads from what it remembers. No store can see it. */
  trueTime(): number;
}

/** Makes the store of one simulated world, empty. Everything it does must follow from the calls it gets. */
export type SimulatedStoreFactory = (host: SimulatedHost) => SimulatedStore;

export function customStore({ plan, host }: StoreOptions, factory: SimulatedStoreFactory): Store {
  const random = new Random(plan.seed, "store");
  const oscillator = new Oscillator(drawRate(plan.rates, random), { mono: 0, boot: 0, wall: 0 });
  const { scheduler } = host;
  const store = factory({ now: () => oscillator.mono(scheduler.now), trueTime: () => scheduler.now });
  return {
    ...ordinary,
    losePower: () => store.losePower?.(),
    connect: (clock, process, trouble, purpose) => {
      const link = new Link(process, host, trouble, plan, purpose);
      return own(store.connect({ clock, wire: link }), link);
    },
  };
}
