/** A fence for a resource within one process. */
import type { Fence } from "../seam/fence.js";
import { assertFresh, checkToken } from "../kit/token.js";

/** Options of a fence in memory. */
export interface MemoryFenceOptions {
  /** The highest token the resource had seen before it was restarted. */
  readonly highest?: bigint | null | undefined;
}

/**
 * Remembers the highest token in memory. `check` is synchronous: what the
 * resource does in the same tick after it, no newer leader can come before.
 *
 * It forgets with the process. A resource that outlives its process stores
 * {@link highest} together with its data and hands it in again; or it uses a
 * fence that stores by itself (records, files, etcd).
 */
export class MemoryFence implements Fence {
  #highest: bigint | null;

  constructor(options: MemoryFenceOptions = {}) {
    this.#highest =
      options.highest === undefined || options.highest === null ? null : checkToken(options.highest);
  }

  /** The newest leader seen; `null` = none yet. */
  get highest(): bigint | null {
    return this.#highest;
  }

  check(token: bigint): void {
    assertFresh(checkToken(token), this.#highest);
    this.#highest = token;
  }
}
