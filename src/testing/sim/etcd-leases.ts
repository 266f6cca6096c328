/** Leases of the modelled etcd: they end by the *server's* clock, and a little late. */
import type { LeaseGrant } from "../../backends/etcd/client.js";
import type { Timeline } from "./etcd-watches.js";
import type { Oscillator } from "./oscillator.js";
import type { Random } from "./random.js";

/** etcd refuses to keep leases shorter than this (1.5 x its election timeout, rounded up). */
export const SHORTEST_LEASE_S = 2;
/** How late the server may notice that a lease has run out. */
const EXPIRY_SLACK_MS = 500;

/** What a backup keeps of a lease: not how long it still lasts. */
export interface KeptLease {
  readonly id: bigint;
  readonly ttlSeconds: number;
  readonly keys: ReadonlySet<string>;
}

interface Lease extends KeptLease {
  expiresAt: number;
  readonly keys: Set<string>;
}

export interface EtcdLeasesOptions {
  readonly scheduler: Timeline;
  readonly oscillator: Pick<Oscillator, "mono" | "whenMono">;
  readonly random: Random;
}

export class EtcdLeases {
  readonly #options: EtcdLeasesOptions;
  readonly #expired: (id: bigint) => void;
  readonly #leases = new Map<bigint, Lease>();

  constructor(options: EtcdLeasesOptions, expired: (id: bigint) => void) {
    this.#options = options;
    this.#expired = expired;
  }

  get(id: bigint): Lease | undefined {
    return this.#leases.get(id);
  }

  has(id: bigint): boolean {
    return this.#leases.has(id);
  }

  delete(id: bigint): void {
    this.#leases.delete(id);
  }

  grant(ttlSeconds: number): LeaseGrant {
    const granted = Math.max(SHORTEST_LEASE_S, ttlSeconds);
    const id = BigInt(`0x${this.#options.random.hex(15)}`) + 1n;
    this.#add({ id, ttlSeconds: granted, expiresAt: 0, keys: new Set<string>() });
    return { id, ttl: BigInt(granted) };
  }

  extend(lease: Lease): void {
    const { oscillator, scheduler } = this.#options;
    lease.expiresAt = oscillator.mono(scheduler.now) + lease.ttlSeconds * 1000;
  }

  extendAll(): void {
    for (const lease of this.#leases.values()) this.extend(lease);
  }

  copy(): KeptLease[] {
    return [...this.#leases.values()].map(({ id, ttlSeconds, keys }) => ({
      ...{ id, ttlSeconds, keys: new Set(keys) },
    }));
  }

  /** Only these are left, and each is given its full time. */
  restore(leases: readonly KeptLease[]): void {
    this.#leases.clear();
    for (const { keys, ...lease } of leases) this.#add({ ...lease, expiresAt: 0, keys: new Set(keys) });
  }

  #add(lease: Lease): void {
    this.#leases.set(lease.id, lease);
    this.extend(lease);
    this.#await(lease);
  }

  /** Looks at a lease when it may have run out. */
  #await(lease: Lease): void {
    const { oscillator, scheduler, random } = this.#options;
    const time = oscillator.whenMono(lease.expiresAt) + Math.max(0, random.next() - 0.3) * EXPIRY_SLACK_MS;
    scheduler.quietly(time, () => {
      if (this.#leases.get(lease.id) !== lease) return;
      if (oscillator.mono(scheduler.now) >= lease.expiresAt) this.#expired(lease.id);
      else this.#await(lease);
    });
  }
}
