/**
 * A candidate as people write it with node-zookeeper-client: the lowest node
 * leads, the next one watches the node before its own, and whoever leads goes on
 * until the client says that it is disconnected or expired.
 */
import { once } from "node:events";
import type { EventEmitter } from "node:events";
import type { Client } from "node-zookeeper-client";

export class NodeZooKeeperCandidate {
  readonly #client: Client;
  readonly #parent: string;
  #own = "";
  #leads = false;
  /** When the client tells that it lost its connection, or its session. */
  readonly told: Promise<void>;

  private constructor(client: Client, parent: string) {
    this.#client = client;
    this.#parent = parent;
    this.told = new Promise((resolve) => {
      for (const event of ["disconnected", "expired"] as const)
        client.once(event, () => {
          this.#leads = false;
          resolve();
        });
    });
  }

  static async connect(host: string, parent: string, sessionMs: number): Promise<NodeZooKeeperCandidate> {
    const { default: zookeeper } = await import("node-zookeeper-client");
    const client = zookeeper.createClient(host, { sessionTimeout: sessionMs });
    const connected = once(client as unknown as EventEmitter, "connected");
    client.connect();
    await connected;
    const candidate = new NodeZooKeeperCandidate(client, parent);
    await candidate.#create(parent, zookeeper.CreateMode.PERSISTENT).catch(() => {}); // there already
    return candidate;
  }

  get leads(): boolean {
    return this.#leads;
  }

  /** Enters the queue. Resolves with the wait for leadership. */
  async stand(): Promise<{ readonly elected: Promise<void> }> {
    const { default: zookeeper } = await import("node-zookeeper-client");
    this.#own = await this.#create(`${this.#parent}/n-`, zookeeper.CreateMode.EPHEMERAL_SEQUENTIAL);
    return { elected: this.#elected() };
  }

  resign(): Promise<void> {
    this.#leads = false;
    return new Promise((resolve, reject) => {
      this.#client.remove(this.#own, -1, (error) => (error === null ? resolve() : reject(error)));
    });
  }

  close(): void {
    this.#client.close();
  }

  async #elected(): Promise<void> {
    for (;;) {
      const names = (await this.#children()).toSorted();
      const before = names[names.indexOf(this.#own.slice(this.#parent.length + 1)) - 1];
      if (before === undefined) break;
      await this.#deleted(`${this.#parent}/${before}`);
    }
    this.#leads = true;
  }

  #create(path: string, mode: number): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#client.create(path, mode, (error, made) => (error ? reject(error) : resolve(made)));
    });
  }

  #children(): Promise<string[]> {
    return new Promise((resolve, reject) => {
      this.#client.getChildren(this.#parent, (error, names) => (error ? reject(error) : resolve(names)));
    });
  }

  #deleted(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const watcher = (): void => resolve();
      this.#client.exists(path, watcher, (error, stat) => {
        if (error) reject(error);
        else if (stat === null) resolve();
      });
    });
  }
}
