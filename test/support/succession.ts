/** Candidates of one election at the seam, each with a connection of its own: who leads, and in which order. */
import type { Backend, Heir, Hold } from "../../src/seam/backend.js";

const TTL_MS = 30_000;
const ATTEMPT_MS = 4_000;
const RETRY_MS = 200;

export interface StandingOptions {
  readonly standBackMs?: () => number;
  readonly ttlMs?: number;
}

export class Succession {
  /** Ids, in the order in which they led. */
  readonly led: string[] = [];
  readonly election: string;
  readonly #open: () => Backend | Promise<Backend>;
  readonly #standing: Standing[] = [];

  constructor(election: string, open: () => Backend | Promise<Backend>) {
    this.election = election;
    this.#open = open;
  }

  /** A candidate that has begun to campaign. */
  async join(id: string, options: StandingOptions = {}): Promise<Standing> {
    const standing = new Standing(this, await this.#open(), id, options);
    this.#standing.push(standing);
    standing.campaign();
    return standing;
  }

  async close(): Promise<void> {
    await Promise.all(this.#standing.map((standing) => standing.close()));
  }
}

export class Standing {
  readonly id: string;
  readonly backend: Backend;
  readonly #succession: Succession;
  readonly #options: StandingOptions;
  readonly #stop = new AbortController();
  #campaign: Promise<Hold> = new Promise(() => {});

  constructor(succession: Succession, backend: Backend, id: string, options: StandingOptions) {
    this.#succession = succession;
    this.backend = backend;
    this.id = id;
    this.#options = options;
  }

  campaign(): void {
    const { election, led } = this.#succession;
    const { standBackMs, ttlMs = TTL_MS } = this.#options;
    const candidacy = {
      ...{ election, candidate: `${this.id}-0a1b2c`, value: this.id, ttlMs },
      ...{ retryMs: RETRY_MS, attemptMs: ATTEMPT_MS, standBackMs },
    };
    this.#campaign = this.backend
      .campaign(candidacy, { wait: true, signal: this.#stop.signal })
      .then((hold) => {
        if (hold === null) throw new Error(`${this.id} was told that another leads`);
        led.push(this.id);
        return hold;
      });
    this.#campaign.catch(() => {});
  }

  /** When it leads. */
  leads(): Promise<Hold> {
    return this.#campaign;
  }

  async resign(heir?: Heir): Promise<void> {
    await (await this.#campaign).release({ signal: new AbortController().signal, heir });
  }

  /** It stops, as a process that ends in order. */
  async close(): Promise<void> {
    this.#stop.abort(new Error("enough"));
    await this.backend[Symbol.asyncDispose]();
  }
}
