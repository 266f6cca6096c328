/** Three Raft voters, and a proxy before each, for backends of the conformance suite that stand without a vote. */
import { faultProxy } from "../../src/testing/conformance/index.js";
import type { FaultProxy, WireFaults } from "../../src/testing/conformance/index.js";
import { RaftCluster } from "./raft-cluster.js";

export const skips = [
  {
    test: "a store that forgets",
    reason: "voters that lost their disks do not vote: see test/raft/lost-record.test.ts",
  },
  { test: "a store whose clock jumps", reason: "voters count leases by clocks that cannot be set" },
];

export class ProxiedVoters {
  cluster!: RaftCluster;
  #proxies: FaultProxy[] = [];

  async start(): Promise<void> {
    this.cluster = await RaftCluster.start();
    this.#proxies = await Promise.all(this.cluster.ports.map((port) => faultProxy({ port })));
  }

  /** The voters' names, and where their proxies listen. */
  dial(): Record<string, string> {
    const entries = this.cluster.names.map((name, index) => [
      name,
      `127.0.0.1:${this.#proxies[index]!.port}`,
    ]);
    return Object.fromEntries(entries) as Record<string, string>;
  }

  readonly faults: Required<WireFaults> = {
    cut: () => this.#all((proxy) => proxy.cut()),
    deafen: (start) => this.#all((proxy) => proxy.deafen(start)),
    slow: (delayMs) => this.#all((proxy) => proxy.slow(delayMs)),
    blackHole: () => this.#all((proxy) => proxy.blackHole()),
    heal: () => this.#all((proxy) => proxy.heal()),
  };

  #all(fault: (proxy: FaultProxy) => unknown): void {
    for (const proxy of this.#proxies) void fault(proxy);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
    await this.cluster.stop();
  }
}
