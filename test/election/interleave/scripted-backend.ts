/** A store in memory whose every answer takes a fixed number of microtasks, and which remembers what it was asked. */
import type {
  Backend,
  CallOptions,
  CampaignOptions,
  Candidacy,
  Extension,
  Guarantees,
  Hold,
  Leader,
} from "../../../src/seam/backend.js";
import type { RecordStore } from "../../../src/seam/table.js";
import { readClocks } from "../../../src/kit/clock.js";
import type { Clock, Reading } from "../../../src/seam/clock.js";
import { memoryBackend } from "../../../src/index.js";

export interface Script {
  /** Microtasks that each answer takes. */
  readonly hops: number;
  /** The same for giving back, if it takes longer. */
  readonly releaseHops?: number;
  /** The grant was asked for this long ago when it arrives: near a ttl, it must be confirmed. */
  readonly grantAgeMs: number;
  /** Campaigns do not hear their signal: what they win arrives after nobody waits for it. */
  readonly deaf: boolean;
  /** Campaigns that find someone else leading before one is granted. */
  readonly busy: number;
  /** What the first confirmation is told. */
  readonly confirms: "yes" | "lost" | "unknown";
  /** Releases that are not answered well before one is. */
  readonly failedReleases: number;
}

export const PLAIN: Script = {
  hops: 2,
  grantAgeMs: 0,
  deaf: false,
  busy: 0,
  confirms: "yes",
  failedReleases: 0,
};

async function hops(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await Promise.resolve();
}

export class ScriptedBackend implements Backend {
  readonly name = "scripted";
  readonly guarantees: Guarantees;
  readonly records: RecordStore;
  readonly holds: ScriptedHold[] = [];
  /** Calls that were made and have not settled. */
  underWay = 0;
  /** From here on no call is answered. */
  hangs = false;
  onCall: (what: string, token?: bigint) => void = () => {};
  #busy: number;
  #tokens = 0n;

  constructor(
    readonly clock: Clock,
    readonly script: Script,
  ) {
    const memory = memoryBackend({ clock });
    this.guarantees = memory.guarantees;
    this.records = memory.records;
    this.#busy = script.busy;
  }

  campaign({ ttlMs }: Candidacy, { signal }: CampaignOptions): Promise<Hold | null> {
    return this.call("campaign", undefined, async () => {
      for (let i = 0; i < this.script.hops; i++) {
        if (!this.script.deaf) signal.throwIfAborted();
        await Promise.resolve();
      }
      if (!this.script.deaf) signal.throwIfAborted();
      if (this.#busy-- > 0) return null;
      const hold = new ScriptedHold(this, ++this.#tokens, this.#asked(), ttlMs);
      this.holds.push(hold);
      return hold;
    });
  }

  #asked(): Reading {
    const { now, wall, boot } = readClocks(this.clock);
    const age = this.script.grantAgeMs;
    return { now: now - age, wall: wall - age, boot: boot - age };
  }

  /** One look, and the end of it: whoever follows has to ask again. */
  async *observe(): AsyncGenerator<Leader | null, void, undefined> {
    yield await this.call("observe", undefined, async () => {
      await hops(this.script.hops);
      return null;
    });
  }

  async call<T>(what: string, token: bigint | undefined, serve: () => Promise<T>): Promise<T> {
    this.onCall(what, token);
    this.underWay++;
    try {
      if (this.hangs) await new Promise(() => {});
      return await serve();
    } finally {
      this.underWay--;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

export class ScriptedHold implements Hold {
  readonly #revoked = new AbortController();
  /** Given back, and the store has said so. */
  released = false;
  /** The store has said that it is gone. */
  lost = false;
  #confirmed = false;
  #releases = 0;

  constructor(
    readonly backend: ScriptedBackend,
    readonly token: bigint,
    readonly asked: Reading,
    readonly ttlMs: number,
  ) {}

  get revoked(): AbortSignal {
    return this.#revoked.signal;
  }

  revoke(): void {
    this.lost = true;
    this.#revoked.abort();
  }

  renew(options: CallOptions): Promise<Extension | "lost"> {
    const { clock, script } = this.backend;
    const confirms = this.#confirmed || this.token > 1n || script.grantAgeMs === 0 ? "yes" : script.confirms;
    this.#confirmed = true;
    return this.backend.call("renew", this.token, async () => {
      const asked = readClocks(clock);
      await hops(script.hops);
      options.signal.throwIfAborted();
      if (confirms === "unknown") throw new Error("the store cannot be asked");
      if (this.lost || confirms === "lost") {
        this.lost = true;
        return "lost";
      }
      return { asked };
    });
  }

  proclaim(_value: string, options: CallOptions): Promise<Extension | "lost"> {
    return this.renew(options);
  }

  release(): Promise<void> {
    return this.backend.call("release", this.token, async () => {
      await hops(this.backend.script.releaseHops ?? this.backend.script.hops);
      if (this.#releases++ < this.backend.script.failedReleases) throw new Error("the store cannot be asked");
      this.released = true;
    });
  }
}
