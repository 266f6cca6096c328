/** What observers of each layout are shown of a leader that publishes a value: another value, and the same token. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { zookeeperBackend } from "../../src/backends/zookeeper/index.js";
import { Election } from "../../src/index.js";
import { hasZooKeeper, ZooKeeperServer } from "../support/zookeeper-server.js";

describe.skipIf(!hasZooKeeper())("ZooKeeper: observers", () => {
  let server: ZooKeeperServer;

  beforeAll(async () => {
    server = await ZooKeeperServer.start();
  });
  afterAll(() => server.stop());

  it.each(["curator-latch", "curator-lock", "kazoo"] as const)(
    "%s: a value that is published later changes no token",
    async (layout) => {
      const open = (id: string): Election =>
        new Election({
          ...{ name: `observed-${layout}`, id, ttlMs: 10_000, closeBackend: true },
          backend: zookeeperBackend({ hosts: server.hosts, env: {}, layout }),
        });
      const [leading, watching] = [open("a"), open("b")];
      const term = await leading.campaign();
      for (const value of ["first", "second"]) {
        await term.proclaim(value);
        for await (const leader of watching.observe())
          if (leader?.value === value) {
            expect(leader.token).toBe(term.token);
            break;
          }
      }
      await term.resign();
      await Promise.all([leading.close(), watching.close()]);
    },
  );
});
