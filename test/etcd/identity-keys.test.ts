/** A candidate writes its id to an identity key, if its role allows it. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { etcdBackend, type EtcdOptions } from "../../src/backends/etcd/index.js";
import type { Leader } from "../../src/seam/backend.js";
import { Election } from "../../src/election/election.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { until } from "../support/until.js";

const LEASE = /^[0-9a-f]{1,16}$/;

describe.skipIf(!hasEtcd())("etcd: identity keys and roles", () => {
  let server: EtcdServer;
  const elections: Election[] = [];
  const troubles: unknown[] = [];

  beforeAll(async () => {
    server = await EtcdServer.start({ rootPassword: "root-password" });
    // "app" is the role of the documentation: the whole prefix. "narrow" may touch the election's own keys alone.
    for (const [user, prefixes] of [
      ["app", ["/app/"]],
      ["narrow", ["/app/jobs"]],
    ] as const) {
      await server.etcdctl("role", "add", user);
      for (const prefix of prefixes)
        await server.etcdctl("role", "grant-permission", "--prefix=true", user, "readwrite", prefix);
      await server.etcdctl("user", "add", `${user}:password`);
      await server.etcdctl("user", "grant-role", user, user);
    }
  });
  afterEach(async () => {
    await Promise.all(elections.splice(0).map((election) => election.close()));
    troubles.splice(0);
  });
  afterAll(() => server.stop());

  function stand(user: "app" | "narrow", layout: EtcdOptions["layout"] = "queue", id?: string): Election {
    const note = (message: string): void => {
      troubles.push(message);
    };
    const election = new Election({
      name: "jobs",
      id,
      backend: etcdBackend({
        endpoints: server.endpoints,
        username: user,
        password: "password",
        prefix: "/app",
        layout,
        env: {},
      }),
      ttlMs: 10_000,
      closeBackend: true,
      logger: { debug: () => {}, info: () => {}, warn: note, error: note },
    });
    election.on("error", ({ error }) => troubles.push(error));
    elections.push(election);
    return election;
  }

  /** Everything an observer is told. */
  function follow(election: Election): (Leader | null)[] {
    const seen: (Leader | null)[] = [];
    election.on("leader", ({ leader }) => seen.push(leader));
    return seen;
  }

  for (const layout of ["queue", "key"] as const) {
    describe(`layout ${layout}`, () => {
      it("a role for the election's own keys: candidates win in turn, observers see leases", async () => {
        const [first, second, observer] = [
          stand("narrow", layout),
          stand("narrow", layout),
          stand("narrow", layout),
        ];
        const seen = follow(observer);
        const term = await first.campaign();
        const next = second.campaign();
        await until(() => (seen.at(-1) ?? null) !== null);
        expect(seen.at(-1)?.candidate).toMatch(LEASE);
        expect(seen.at(-1)?.token).toBe(term.token);
        expect((await observer.leader())?.candidate).toMatch(LEASE);
        await term.resign();
        const following = await next;
        expect(following.held).toBe(true);
        await until(() => seen.at(-1)?.token === following.token);
        expect(seen.at(-1)?.candidate).toMatch(LEASE);
        // A second term on the same backend, now that it knows: nothing of the first try is left.
        await following.resign();
        expect((await second.campaign()).held).toBe(true);
        expect(await server.etcdctl("get", "--prefix", "--keys-only", "/app/conclave.candidates/")).toBe("");
        expect(troubles).toEqual([]);
      });

      it("without waiting, too", async () => {
        const [first, second] = [stand("narrow", layout), stand("narrow", layout)];
        const term = await first.tryCampaign();
        expect(term?.held).toBe(true);
        expect(await second.tryCampaign()).toBeNull();
        await term?.resign();
        expect((await second.tryCampaign())?.held).toBe(true);
        expect(troubles).toEqual([]);
      });

      it("the documentation's role: observers see who it is, and the identity key is removed with the term", async () => {
        const [first, observer] = [stand("app", layout, "alice"), stand("app", layout)];
        const seen = follow(observer);
        const term = await first.campaign();
        await until(() => (seen.at(-1) ?? null) !== null);
        expect(seen.at(-1)?.candidate).toBe(first.candidate);
        expect(first.candidate).toContain("alice");
        await term.resign();
        await until(() => seen.at(-1) === null);
        expect(await server.etcdctl("get", "--prefix", "--keys-only", "/app/")).toBe("");
        expect(troubles).toEqual([]);
      });

      it("one may, the other may not: the lease where there is no identity key, or none that may be read", async () => {
        const [narrow, wide] = [stand("narrow", layout), stand("app", layout, "bob")];
        const seenByNarrow = follow(narrow);
        const seenByWide = follow(wide);
        const term = await narrow.campaign();
        await until(() => seenByWide.at(-1)?.token === term.token);
        expect(seenByWide.at(-1)?.candidate).toMatch(LEASE); // there is no identity key
        await term.resign();
        const next = await wide.campaign();
        await until(() => seenByNarrow.at(-1)?.token === next.token);
        expect(seenByNarrow.at(-1)?.candidate).toMatch(LEASE); // it may not be read
        await until(() => seenByWide.at(-1)?.token === next.token);
        expect(seenByWide.at(-1)?.candidate).toBe(wide.candidate);
        expect(troubles).toEqual([]);
      });
    });
  }
});
