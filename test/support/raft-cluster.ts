/** Voters on this machine, in directories and on ports of their own. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RaftBackend } from "../../src/backends/raft/backend.js";
import type { RaftOptions } from "../../src/backends/raft/index.js";
import { systemClock } from "../../src/kit/clock.js";
import { freePorts } from "./free-ports.js";

export const KEY = "a key for tests that nobody else has, 32 bytes";

export class RaftCluster {
  readonly names: readonly string[];
  readonly #voters = new Map<string, RaftBackend>();
  readonly lines: string[] = [];

  private constructor(
    readonly directory: string,
    readonly ports: readonly number[],
  ) {
    this.names = ports.map((_, index) => `n${index + 1}`);
  }

  static async prepare(count = 3): Promise<RaftCluster> {
    return new RaftCluster(await mkdtemp(join(tmpdir(), "conclave-raft-")), await freePorts(count));
  }

  static async start(count = 3): Promise<RaftCluster> {
    const cluster = await RaftCluster.prepare(count);
    await Promise.all(cluster.names.map((name) => cluster.up(name)));
    await cluster.ready();
    return cluster;
  }

  get peers(): string[] {
    return this.names.map((name, index) => `${name}@127.0.0.1:${this.ports[index]}`);
  }

  get list(): string {
    return this.peers.join(",");
  }

  dir(name: string): string {
    return join(this.directory, name);
  }

  options(self?: string, more: Partial<RaftOptions> = {}): RaftOptions {
    const log = (line: string): void => void this.lines.push(line);
    return {
      peers: this.peers,
      key: KEY,
      log,
      ...(self !== undefined && { self, dir: this.dir(self) }),
      ...more,
    };
  }

  backend(self?: string, more: Partial<RaftOptions> = {}): RaftBackend {
    return new RaftBackend(this.options(self, more));
  }

  async up(name: string): Promise<RaftBackend> {
    const voter = this.backend(name);
    await voter.start();
    this.#voters.set(name, voter);
    return voter;
  }

  voter(name: string): RaftBackend {
    return this.#voters.get(name)!;
  }

  async down(name: string): Promise<void> {
    await this.#voters.get(name)?.[Symbol.asyncDispose]();
    this.#voters.delete(name);
  }

  async wipe(name: string): Promise<void> {
    await rm(this.dir(name), { recursive: true, force: true });
  }

  /** Until all voters that are up take part. */
  async ready(): Promise<void> {
    const until = systemClock.now() + 20_000;
    for (;;) {
      const unfit = [...this.#voters.values()].flatMap((voter) => voter.unfit ?? []);
      if (unfit.length === 0) return;
      if (systemClock.now() > until) throw new Error(`voters do not take part: ${unfit.join("; ")}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#voters.keys()].map((name) => this.down(name)));
    await rm(this.directory, { recursive: true, force: true });
  }
}
