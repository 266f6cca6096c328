/** Bully as a backend. */
import { systemClock } from "../../kit/clock.js";
import { ConclaveError, invalid } from "../../kit/errors.js";
import { onAbort, sharedController, untilAborted } from "../../kit/wait.js";
import type {
  Backend,
  CampaignOptions,
  Candidacy,
  Guarantees,
  Hold,
  Leader,
  ObserveOptions,
} from "../../seam/backend.js";
import { Campaign } from "./campaign.js";
import { BullyNode } from "./node.js";
import { observeLeader } from "./observe.js";
import { checkOptions } from "./options.js";
import type { BullyOptions } from "./options.js";

export const bullyGuarantees: Guarantees = {
  exclusion: "best-effort",
  expiry: "connection",
  token: "unfenced",
  succession: "unordered",
  honours: [], // the highest leads
  ttl: { minMs: 500, stepMs: 1 },
};

export class BullyBackend implements Backend {
  readonly name: string = "bully";
  readonly guarantees = bullyGuarantees;
  readonly timing = { ttlMs: 2_000 };
  readonly #node: BullyNode;
  readonly #isPeer: boolean;
  readonly #closing = sharedController();
  readonly #campaigns = new Set<Promise<unknown>>();
  #closed: Promise<void> | undefined;

  constructor(options: BullyOptions, env?: NodeJS.ProcessEnv) {
    const config = checkOptions(options, env);
    this.#isPeer = config.self !== undefined;
    this.#node = new BullyNode(config, options.clock ?? systemClock, (line) => options.log?.(line));
  }

  /** Listens. Without it the first use does. */
  async start(): Promise<void> {
    try {
      await this.#node.start();
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  async campaign(candidacy: Candidacy, options: CampaignOptions): Promise<Hold | null> {
    this.#assertOpen();
    options.signal.throwIfAborted();
    if (!this.#isPeer)
      throw invalid(
        "only a peer of the list can lead: say which one this process is (self; in a URL: &self=n1)",
      );
    await untilAborted(options.signal, this.#node.start());
    const { signal, unlink } = this.#linked(options.signal);
    const running = new Campaign(this.#node, candidacy, { ...options, signal }).run();
    this.#campaigns.add(running);
    try {
      return await running;
    } finally {
      this.#campaigns.delete(running);
      unlink();
    }
  }

  async *observe(election: string, options: ObserveOptions): AsyncGenerator<Leader | null> {
    this.#assertOpen();
    await untilAborted(options.signal, this.#node.start());
    const { signal, unlink } = this.#linked(options.signal);
    try {
      yield* observeLeader(this.#node, election, { ...options, signal });
    } catch (error) {
      if (!options.signal.aborted) throw error;
    } finally {
      unlink();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#closing.abort(closed());
    await Promise.allSettled(this.#campaigns);
    await this.#node.close();
  }

  #linked(own: AbortSignal): { signal: AbortSignal; unlink: () => void } {
    const stop = new AbortController();
    const unlinks = [own, this.#closing.signal].map((signal) =>
      onAbort(signal, () => stop.abort(signal.reason)),
    );
    return { signal: stop.signal, unlink: () => unlinks.forEach((unlink) => unlink()) };
  }

  #assertOpen(): void {
    if (this.#closed !== undefined) throw closed();
  }
}

function closed(): ConclaveError {
  return new ConclaveError("state", "this bully backend is closed; open a new one");
}
