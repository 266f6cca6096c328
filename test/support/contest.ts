/** Candidates on real servers, counted: who led, who led too long, and for how long nobody did. */
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { parseEndpoint } from "../../src/backends/etcd/client/endpoint.js";
import { Election } from "../../src/election/election.js";
import { TcpProxy } from "./tcp-proxy.js";

export const TTL = 3_000;

/** What a test opened, closed in reverse when it ends. */
export class Bench {
  readonly #cleanups: (() => Promise<unknown>)[] = [];

  onEnd(cleanup: () => Promise<unknown>): void {
    this.#cleanups.push(cleanup);
  }

  async cleanUp(): Promise<void> {
    for (const cleanup of this.#cleanups.splice(0).reverse()) await cleanup();
  }

  stand(name: string, endpoints: readonly string[]): Election {
    const election = new Election({
      name,
      backend: etcdBackend({ endpoints, env: {} }),
      ttlMs: TTL,
      closeBackend: true,
    });
    this.onEnd(() => election.close());
    return election;
  }

  contest(elections: readonly Election[]): Contest {
    const contest = new Contest(elections);
    this.onEnd(() => contest.end());
    return contest;
  }

  async proxyFor(endpoint: string): Promise<TcpProxy> {
    const proxy = await TcpProxy.start({ port: parseEndpoint(endpoint).port });
    this.onEnd(() => proxy.close());
    return proxy;
  }
}

/**
 * Candidates that stand forever. `held` goes from true to false once in a
 * term, so two terms overlap exactly if one is held when another begins.
 */
export class Contest {
  readonly elections: readonly Election[];
  readonly tokens: bigint[] = [];
  /** Terms that were held when another began, though the store had not been told to end them. */
  overlaps = 0;
  /** The same after the store itself removed the first one's key: known only at the watch event. */
  removals = 0;
  /** Terms that ended because the store had removed their key, whoever told it to. */
  revoked = 0;
  /** What happened, for whoever must find out why a test failed. */
  readonly history: string[] = [];
  /** Longest time from the end of a term to the beginning of the next. */
  longestGapMs = 0;
  readonly #stop = new AbortController();
  readonly #runs: Promise<void>[];
  #endedAt: number | undefined;

  constructor(elections: readonly Election[]) {
    this.elections = elections;
    for (const election of elections) this.#follow(election);
    this.#runs = elections.map((election) =>
      election.run(
        (term) => new Promise((resolve) => term.signal.addEventListener("abort", () => resolve())),
        { signal: this.#stop.signal },
      ),
    );
  }

  get leader(): Election | undefined {
    return this.elections.find((election) => election.leading);
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#runs);
  }

  #follow(election: Election): void {
    election.on("elected", ({ term }) => {
      this.tokens.push(term.token);
      this.#note(election, `elected, token ${term.token}`);
      if (this.#endedAt !== undefined)
        this.longestGapMs = Math.max(this.longestGapMs, performance.now() - this.#endedAt);
      this.#endedAt = undefined;
      for (const other of this.elections) {
        if (other === election || !other.leading) continue;
        void other.term!.ended.then(({ reason }) =>
          reason === "revoked" ? this.removals++ : this.overlaps++,
        );
      }
    });
    election.on("ended", ({ end }) => {
      this.#note(election, `${end.reason}: ${end.detail}`);
      if (end.reason === "revoked") this.revoked++;
      if (this.leader === undefined) this.#endedAt = performance.now();
    });
  }

  #note(election: Election, what: string): void {
    this.history.push(`${Math.round(performance.now())} ms: #${this.elections.indexOf(election)} ${what}`);
  }
}
