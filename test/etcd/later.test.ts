/** What operators do to etcd while candidates stand: switch authentication on, restore a backup. */
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/election/election.js";
import { Bench } from "../support/contest.js";
import { etcdCommand } from "../support/etcd-command.js";
import { EtcdServer, etcdctlEnv, hasEtcd } from "../support/etcd-server.js";
import { until } from "../support/until.js";

const TTL = 6_000;
const PASSWORD = "correct horse";
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.skipIf(!hasEtcd())("etcd: changed under the candidates' feet", () => {
  const bench = new Bench();
  afterEach(() => bench.cleanUp());

  async function start(): Promise<EtcdServer> {
    const server = await EtcdServer.start();
    bench.onEnd(() => server.stop());
    return server;
  }

  function backendOf(server: EtcdServer, password = PASSWORD): ReturnType<typeof etcdBackend> {
    const { endpoints } = server;
    const backend = etcdBackend({ endpoints, username: "root", password, env: {} });
    bench.onEnd(async () => backend[Symbol.asyncDispose]());
    return backend;
  }

  function stand(name: string, backend: ReturnType<typeof etcdBackend>): Election {
    const election = new Election({ name, backend, ttlMs: TTL });
    bench.onEnd(() => election.close());
    return election;
  }

  it("authentication is switched on: terms and those who wait go on", { timeout: 60_000 }, async () => {
    const server = await start();
    const [leader, waiter] = [stand("e", backendOf(server)), stand("e", backendOf(server))];
    const errors: unknown[] = [];
    waiter.on("error", ({ error }) => errors.push(error));
    const term = await leader.campaign();
    const next = waiter.campaign();
    const client = server.client();
    bench.onEnd(async () => client[Symbol.asyncDispose]());
    const limits = { signal: new AbortController().signal, limitMs: 5_000 };
    await until(async () => (await client.range({ key: "e/", rangeEnd: "e0" }, limits)).length === 2);
    await server.etcdctl("user", "add", `root:${PASSWORD}`);
    await server.etcdctl("user", "grant-role", "root", "root");
    await server.etcdctl("auth", "enable");
    await pause(1.5 * TTL);
    expect(term.held).toBe(true);
    await term.proclaim("still here");
    await term.resign();
    expect((await next).held).toBe(true);
    expect(errors).toEqual([]);
  });

  it(
    "authentication is switched on, and the password is wrong: who waits is told",
    { timeout: 60_000 },
    async () => {
      const server = await start();
      const leader = stand("e", backendOf(server));
      await leader.campaign();
      const waiting = stand("e", backendOf(server, "wrong"))
        .campaign()
        .catch((error: unknown) => error);
      const keys = (): Promise<string> => server.etcdctl("get", "--prefix", "--keys-only", "e/");
      await until(async () => (await keys()).trim().split(/\n+/).length === 2);
      await server.etcdctl("user", "add", `root:${PASSWORD}`);
      await server.etcdctl("user", "grant-role", "root", "root");
      await server.etcdctl("auth", "enable");
      await server.members[0]!.kill();
      server.members[0]!.start();
      expect(await waiting).toMatchObject({ code: "forbidden" });
    },
  );

  it(
    "one election is forbidden: it is told, the others go on; all are: leadership is free",
    { timeout: 90_000 },
    async () => {
      const server = await EtcdServer.start({ rootPassword: PASSWORD });
      bench.onEnd(() => server.stop());
      await server.etcdctl("user", "add", "app:app");
      await server.etcdctl("role", "add", "app");
      await server.etcdctl("user", "grant-role", "app", "app");
      const permit = (verb: string, prefix: string): Promise<unknown> =>
        server.etcdctl(
          "role",
          verb,
          "app",
          "--prefix=true",
          ...(verb.startsWith("grant") ? ["readwrite"] : []),
          prefix,
        );
      for (const prefix of ["a/", "b/", "conclave.candidates/"]) await permit("grant-permission", prefix);
      const root = backendOf(server);
      await stand("b", root).campaign();
      const { endpoints } = server;
      const shared = etcdBackend({ endpoints, username: "app", password: "app", env: {} });
      bench.onEnd(async () => shared[Symbol.asyncDispose]());
      const term = await stand("a", shared).campaign();
      const waiting = stand("b", shared)
        .campaign()
        .catch((error: unknown) => error);
      const keys = (): Promise<string> => server.etcdctl("get", "--prefix", "--keys-only", "b/");
      await until(async () => (await keys()).trim().split(/\n+/).length === 2);
      await permit("revoke-permission", "b/");
      expect(await waiting).toMatchObject({ code: "forbidden" });
      await pause(1.5 * TTL);
      expect(term.held).toBe(true);
      await permit("revoke-permission", "a/");
      const next = await stand("a", root).campaign();
      expect([next.held, term.held, term.end?.reason]).toEqual([true, false, "revoked"]);
    },
  );

  it(
    "a backup without our key is restored: the terms end at the next renewal, and who waited for a higher token says so",
    { timeout: 60_000 },
    async () => {
      const server = await start();
      const shared = backendOf(server);
      // The lease is in the backup, the second election's key on it is not, and revisions go back.
      const keeping = stand("kept", shared);
      const kept = await keeping.campaign();
      const backup = join(server.directory, "backup.db");
      await server.etcdctl("snapshot", "save", backup);
      for (let i = 0; i < 20; i++) await server.etcdctl("put", "noise", String(i));
      const gone = await stand("gone", shared).campaign();
      const waiting = stand("gone", backendOf(server)).campaign();
      waiting.catch(() => {});
      const keys = (): Promise<string> => server.etcdctl("get", "--prefix", "--keys-only", "gone/");
      await until(async () => (await keys()).trim().split(/\n+/).length === 2);
      // From its next renewal on the shared lease knows how far the revisions had come.
      await new Promise<void>((resolve) => void keeping.on("renewal", () => resolve()));
      const [member] = server.members;
      await member!.kill();
      const { name, peerUrl } = member!;
      const data = join(server.directory, name);
      rmSync(data, { recursive: true });
      const cluster = ["--initial-cluster", `${name}=${peerUrl}`, "--initial-advertise-peer-urls", peerUrl];
      execFileSync(
        etcdCommand("etcdctl"),
        ["snapshot", "restore", backup, "--name", name, "--data-dir", data, ...cluster],
        {
          env: etcdctlEnv(),
          stdio: "ignore",
        },
      );
      member!.start();
      await server.ready();
      const next = await stand("gone", backendOf(server)).campaign();
      expect(next.token < gone.token).toBe(true); // the revision went back
      await until(() => !gone.held, TTL);
      await until(() => !kept.held, TTL);
      expect([gone.end?.reason, kept.end?.reason, next.held]).toEqual(["revoked", "revoked", true]);
      await next.resign();
      await expect(waiting).rejects.toMatchObject({ code: "token-regression" });
    },
  );
});
