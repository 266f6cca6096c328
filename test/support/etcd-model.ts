/**
 * Processes on virtual time before the simulator's model of etcd, without its
 * random faults: each test says what goes wrong. The store and each process have
 * clocks of their own, moved together by {@link EtcdModel.pass}.
 */
import type { EtcdLayout } from "../../src/backends/etcd/backend.js";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import type { EtcdLink } from "../../src/testing/sim/etcd-watches.js";
import { EtcdServer } from "../../src/testing/sim/etcd-server.js";
import { Random } from "../../src/testing/sim/random.js";
import { onAbort } from "../../src/kit/wait.js";
import { type Backend, Election } from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";

const STEP_MS = 25;

export class EtcdModel {
  readonly server: EtcdServer;
  readonly #clock = new VirtualClock();
  readonly #processes: ModelProcess[] = [];

  constructor() {
    const clock = this.#clock;
    this.server = new EtcdServer({
      scheduler: {
        get now() {
          return clock.now();
        },
        quietly: (time, run) => {
          const timer = clock.after(time - clock.now(), run);
          return { time, cancel: () => timer.cancel() };
        },
      },
      oscillator: { mono: (time) => time, whenMono: (mono) => mono },
      random: new Random(1, "model"),
    });
  }

  process(ttlMs: number, layout: EtcdLayout = "queue"): ModelProcess {
    const process = new ModelProcess(this.server, ttlMs, this.#processes.length + 1, layout);
    this.#processes.push(process);
    return process;
  }

  /** Time passes for the store and for every process, unless `but` says what it does to one of them instead. */
  async pass(ms: number, but?: { who: ModelProcess; how: (ms: number) => void }): Promise<void> {
    for (let left = ms; left > 0; left -= STEP_MS) {
      const step = Math.min(STEP_MS, left);
      await this.#clock.advance(step);
      for (const process of this.#processes) {
        if (process === but?.who) but.how(step);
        else await process.clock.advance(step);
      }
    }
  }

  /** The machine sleeps: its monotonic clock stands still. */
  suspend(who: ModelProcess, ms: number): Promise<void> {
    return this.pass(ms, { who, how: (step) => who.clock.suspend(step) });
  }

  /** Its event loop is blocked. */
  block(who: ModelProcess, ms: number): Promise<void> {
    return this.pass(ms, { who, how: (step) => who.clock.stall(step) });
  }

  async close(): Promise<void> {
    for (const process of this.#processes) await process.close();
  }
}

export class ModelProcess {
  readonly clock: VirtualClock;
  readonly backend: Backend;
  /** Nothing gets through any more, and nobody says so. */
  cut = false;
  /** Requests of these kinds (`keep-alive`, `transaction`) get lost. */
  readonly lost = new Set<string>();
  /** How many of those it has sent. */
  transactions = 0;
  /** Watches say nothing. */
  deaf = false;
  readonly #ttlMs: number;
  readonly #elections: Election[] = [];

  constructor(server: EtcdServer, ttlMs: number, seed: number, layout: EtcdLayout) {
    this.#ttlMs = ttlMs;
    this.clock = new VirtualClock({ seed });
    const link: EtcdLink = {
      process: { alive: true, node: { id: `n${seed}` } },
      call: (what, serve, signal) =>
        new Promise((resolve, reject) => {
          onAbort(signal, () => reject(signal.reason));
          if (what === "transaction") this.transactions++;
          if (!this.cut && !this.lost.has(what)) resolve(Promise.resolve().then(serve));
        }),
      notify: (run) => {
        if (this.cut || this.deaf) return false;
        void Promise.resolve().then(run);
        return true;
      },
      breaks: () => false,
      coin: () => true,
    };
    this.backend = etcdBackend({ client: server.connect(link, this.clock), clock: this.clock, layout });
  }

  election(name: string): Election {
    const election = new Election({ name, backend: this.backend, clock: this.clock, ttlMs: this.#ttlMs });
    this.#elections.push(election);
    return election;
  }

  /** Its requests are answered again, so that closing needs no clock. */
  async close(): Promise<void> {
    this.cut = false;
    this.lost.clear();
    await Promise.all(this.#elections.map((election) => election.close()));
    await this.backend[Symbol.asyncDispose]();
  }
}
