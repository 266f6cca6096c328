/** Bully peers on this machine, with a proxy in every direction of every link. */
import { Election } from "../../src/election/election.js";
import type { Term } from "../../src/api/term.js";
import { BullyBackend } from "../../src/backends/bully/backend.js";
import type { BullyOptions } from "../../src/backends/bully/index.js";
import { faultProxy } from "../../src/testing/conformance/index.js";
import type { FaultProxy } from "../../src/testing/conformance/index.js";
import { freePorts } from "./free-ports.js";
import { KEY } from "./raft-cluster.js";

/** What happened, in the order it happened in this process. */
export interface Happening {
  readonly peer: string;
  readonly what: "begin" | "piece" | "told" | "stopped";
  readonly token: bigint;
}

interface Running {
  readonly election: Election;
  readonly stop: AbortController;
  readonly done: Promise<unknown>;
  term: Term | undefined;
}

const TTL_MS = 800;

export class BullyPeers {
  readonly names: readonly string[];
  readonly lines: string[] = [];
  readonly happenings: Happening[] = [];
  readonly #proxies = new Map<string, FaultProxy>();
  readonly #running = new Map<string, Running>();
  /** How long the work of each peer goes on after it was told to stop. */
  lingerMs = 0;

  private constructor(readonly ports: readonly number[]) {
    this.names = ports.map((_, index) => `n${index + 1}`);
  }

  static async prepare(count = 3): Promise<BullyPeers> {
    const made = new BullyPeers(await freePorts(count));
    for (const from of made.names)
      for (const [index, to] of made.names.entries())
        if (from !== to) made.#proxies.set(`${from} ${to}`, await faultProxy({ port: made.ports[index]! }));
    return made;
  }

  options(self: string | undefined, more: Partial<BullyOptions> = {}): BullyOptions {
    const others = this.names.filter((name) => name !== self && self !== undefined);
    const dial = others.map((to) => [to, `127.0.0.1:${this.#proxies.get(`${self} ${to}`)!.port}`]);
    return {
      peers: this.names.map((name, index) => `${name}@127.0.0.1:${this.ports[index]}`),
      ...(self !== undefined && { self }),
      dial: Object.fromEntries(dial) as Record<string, string>,
      unsafe: true,
      key: KEY,
      log: (line) => void this.lines.push(line),
      ...more,
    };
  }

  /** Starts a peer that works whenever it leads. */
  up(name: string, more: Partial<BullyOptions> = {}): void {
    const backend = new BullyBackend(this.options(name, more));
    const election = new Election({
      name: "e",
      id: name,
      backend,
      closeBackend: true,
      ttlMs: TTL_MS,
      allowUnfenced: true,
    });
    const stop = new AbortController();
    const running: Running = { election, stop, term: undefined, done: Promise.resolve() };
    const done = election.run((term) => this.#work(name, running, term), { signal: stop.signal });
    this.#running.set(name, { ...running, done: done.catch(() => {}) });
    Object.defineProperty(this.#running.get(name), "term", { get: () => running.term });
  }

  async #work(peer: string, running: Running, term: Term): Promise<void> {
    const { token } = term;
    running.term = term;
    this.happenings.push({ peer, what: "begin", token });
    term.signal.addEventListener("abort", () => {
      this.happenings.push({ peer, what: "told", token });
    });
    while (!term.signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      if (term.held) this.happenings.push({ peer, what: "piece", token });
    }
    await new Promise((resolve) => setTimeout(resolve, this.lingerMs));
    this.happenings.push({ peer, what: "stopped", token });
  }

  /** Who leads at this moment, by the law of each. */
  leaders(): string[] {
    return [...this.#running].filter(([, { term }]) => term?.held === true).map(([name]) => name);
  }

  /** Without a word, as a process that is killed: nobody is told. */
  async kill(name: string): Promise<void> {
    for (const [link, proxy] of this.#proxies) if (link.split(" ").includes(name)) void proxy.cut();
    await this.down(name);
    for (const [link, proxy] of this.#proxies) if (link.split(" ").includes(name)) void proxy.heal();
  }

  async down(name: string): Promise<void> {
    const running = this.#running.get(name);
    this.#running.delete(name);
    running?.stop.abort();
    await running?.done;
    await running?.election.close();
  }

  /** Nothing that `from` asks reaches `to`. */
  cut(from: readonly string[], to: readonly string[]): void {
    for (const a of from)
      for (const b of to) for (const link of [`${a} ${b}`, `${b} ${a}`]) void this.#proxies.get(link)!.cut();
  }

  heal(): void {
    for (const proxy of this.#proxies.values()) void proxy.heal();
  }

  async stop(): Promise<void> {
    this.lingerMs = 0;
    this.heal();
    await Promise.all([...this.#running.keys()].map((name) => this.down(name)));
    await Promise.all([...this.#proxies.values()].map((proxy) => proxy[Symbol.asyncDispose]()));
  }
}
