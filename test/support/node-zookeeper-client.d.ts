/** node-zookeeper-client has no types. As much as is used here. */
declare module "node-zookeeper-client" {
  type Done<T> = (error: Error | null, result: T) => void;
  export interface Client {
    connect(): void;
    close(): void;
    once(event: "connected" | "disconnected" | "expired", listener: () => void): this;
    create(path: string, mode: number, done: Done<string>): void;
    getChildren(path: string, done: Done<string[]>): void;
    exists(path: string, watcher: () => void, done: Done<object | null>): void;
    remove(path: string, version: number, done: (error: Error | null) => void): void;
  }
  const zookeeper: {
    readonly CreateMode: { readonly PERSISTENT: number; readonly EPHEMERAL_SEQUENTIAL: number };
    createClient(hosts: string, options: { sessionTimeout: number; retries?: number }): Client;
  };
  export default zookeeper;
}
