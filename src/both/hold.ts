/** A lease in two stores at once: held while both are held, timed from whichever was asked first. */
import type { Reading } from "../seam/clock.js";
import type { CallOptions, Extension, Hold, ReleaseOptions } from "../seam/backend.js";
import type { Stop } from "../seam/stop.js";
import { StopSource } from "../kit/stop.js";
import { onAbort } from "../kit/wait.js";

export class BothHold implements Hold {
  readonly token: bigint;
  readonly asked: Reading;
  readonly ttlMs: number;
  readonly #holds: readonly [Hold, Hold];
  readonly #revoked = new StopSource();
  readonly #unlink: readonly (() => void)[];
  /** The newest question whose answer extended one of the leases. */
  #newest: number;

  /** `first` was granted first and renewed since, last by `extension`; `second` was granted just now. */
  constructor(first: Hold, extension: Extension, second: Hold, token: bigint) {
    this.#holds = [first, second];
    this.token = token;
    this.asked = older(extension.asked, second.asked);
    this.ttlMs = Math.min(first.ttlMs, second.ttlMs);
    this.#newest = Math.max(extension.asked.now, second.asked.now);
    this.#unlink = this.#holds.flatMap((hold) =>
      hold.revoked === undefined ? [] : [onAbort(hold.revoked, () => this.#lose(hold))],
    );
  }

  get revoked(): Stop {
    return this.#revoked;
  }

  renew(options: CallOptions): Promise<Extension | "lost"> {
    return this.#inBoth((hold) => hold.renew(options));
  }

  proclaim(value: string, options: CallOptions): Promise<Extension | "lost"> {
    return this.#inBoth((hold) => hold.proclaim(value, options));
  }

  /**
   * In the reverse order of the grants: whoever waits for the first lease then finds the second one free. An heir is
   * named in both, since some know only one of the stores; it has half of the time in each, because others who use
   * both leave it one vacancy after the other.
   */
  async release({ signal, heir }: ReleaseOptions): Promise<void> {
    const [first, second] = this.#holds;
    const options = { signal, ...(heir && { heir: { ...heir, forMs: heir.forMs / 2 } }) };
    for (const each of this.#unlink) each();
    try {
      await second.release(options);
    } finally {
      await first.release(options);
    }
  }

  abandon(at: number): void {
    for (const hold of this.#holds) hold.abandon?.(at);
  }

  /** Not known in one store is not known. Lost in one is lost. */
  async #inBoth(ask: (hold: Hold) => Promise<Extension | "lost">): Promise<Extension | "lost"> {
    const [first, second] = this.#holds;
    const [a, b] = await Promise.allSettled([ask(first), ask(second)]);
    for (const answer of [a, b])
      if (answer.status === "fulfilled" && answer.value !== "lost")
        this.#newest = Math.max(this.#newest, answer.value.asked.now);
    if (a.status === "fulfilled" && a.value === "lost") return this.#lose(first);
    if (b.status === "fulfilled" && b.value === "lost") return this.#lose(second);
    if (a.status === "rejected") throw a.reason;
    if (b.status === "rejected") throw b.reason;
    if (a.value === "lost" || b.value === "lost") return "lost"; // said above; the compiler does not know
    return { asked: older(a.value.asked, b.value.asked) };
  }

  /** The term is over, and core releases nothing after a loss: what is left in the other store is taken away once its lease has ended. */
  #lose(lost: Hold): "lost" {
    const at = this.#newest + Math.max(...this.#holds.map(({ ttlMs }) => ttlMs));
    for (const hold of this.#holds) if (hold !== lost) hold.abandon?.(at);
    this.#revoked.stop();
    return "lost";
  }
}

function older(a: Reading, b: Reading): Reading {
  return a.now <= b.now ? a : b;
}
