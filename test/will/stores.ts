/** Servers of the stores whose leaders are killed, each for one test. */
import { onTestFinished } from "vitest";
import { storeServers } from "../support/store-servers.js";

export interface KilledStore {
  readonly name: string;
  /** Its longest ttl, if it is shorter than a minute. */
  readonly ttl: string | undefined;
  /** URL of a store of this test's own. */
  open(): Promise<string>;
}

export const stores: readonly KilledStore[] = storeServers.map(({ name, longestTtlMs, start }) => ({
  name,
  ttl: longestTtlMs === undefined ? undefined : `${longestTtlMs}ms`,
  open: async () => {
    const { url, stop } = await start();
    onTestFinished(async () => void (await stop()), 60_000);
    return url;
  },
}));
