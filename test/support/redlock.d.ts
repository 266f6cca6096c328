/** redlock has types, but its package does not lead to them. As much as is used here. */
declare module "redlock" {
  interface RedlockLock {
    release(): Promise<unknown>;
    extend(durationMs: number): Promise<RedlockLock>;
  }
  interface RedlockSignal extends AbortSignal {
    error?: Error;
  }
  export default class Redlock {
    constructor(clients: Iterable<unknown>, settings?: Record<string, number>);
    acquire(resources: string[], durationMs: number): Promise<RedlockLock>;
    using<T>(
      resources: string[],
      durationMs: number,
      routine: (signal: RedlockSignal) => Promise<T>,
    ): Promise<T>;
    on(event: "error", listener: (error: Error) => void): this;
  }
}
