import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { etcdBackend, openEtcd } from "../../src/backends/etcd/index.js";
import type { Backend } from "../../src/seam/backend.js";
import { Election } from "../../src/election/election.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { until } from "../support/until.js";

const SECRET = "correct horse battery";

/** Everything a person or a log could see of an error. */
function visible(error: unknown): string {
  const parts: string[] = [];
  for (let at: unknown = error; at instanceof Error; at = at.cause)
    parts.push(at.message, at.stack ?? "", JSON.stringify(at));
  return parts.join("\n");
}

describe.skipIf(!hasEtcd())("etcd: TLS, authentication and clear errors", () => {
  let secured: EtcdServer;
  let guarded: EtcdServer;
  const backends: Backend[] = [];

  beforeAll(async () => {
    [secured, guarded] = await Promise.all([
      EtcdServer.start({ tls: "mutual" }),
      EtcdServer.start({ rootPassword: SECRET, electionMs: 5_000 }),
    ]);
    await guarded.etcdctl("user", "add", "limited:limited-password");
    await guarded.etcdctl("role", "add", "elections");
    await guarded.etcdctl("role", "grant-permission", "--prefix=true", "elections", "readwrite", "/app/");
    await guarded.etcdctl("user", "grant-role", "limited", "elections");
  });

  afterEach(async () => {
    await Promise.all(backends.splice(0).map((backend) => backend[Symbol.asyncDispose]()));
  });

  afterAll(async () => {
    await Promise.all([secured.stop(), guarded.stop()]);
  });

  async function fails(
    backend: Backend,
    ttlMs = 20_000,
  ): Promise<Error & { code: string; retriable: boolean }> {
    backends.push(backend);
    const election = new Election({ name: "e", backend, ttlMs });
    const error = await election.tryCampaign().then(
      () => new Error("it worked"),
      (caught: Error) => caught,
    );
    await election.close();
    expect(visible(error)).not.toContain(SECRET);
    return error as Error & { code: string; retriable: boolean };
  }

  async function works(backend: Backend, name = "ok"): Promise<void> {
    backends.push(backend);
    const election = new Election({ name, backend, ttlMs: 20_000 });
    expect((await election.tryCampaign())?.held).toBe(true);
    await election.close();
  }

  const endpoint = (server: EtcdServer): string => server.endpoints[0]!;
  const guardedBackend = (username: string, password: string, prefix?: string): Backend =>
    etcdBackend({ endpoints: guarded.endpoints, username, password, prefix, env: {} });

  it("speaks mutual TLS with files from the URL", async () => {
    const { ca, cert, key } = secured.tls!;
    await works(openEtcd(`etcds://${endpoint(secured)}/tls?ca=${ca}&cert=${cert}&key=${key}`, { env: {} }));
  });

  it("reads the files anew for every connection", async () => {
    const path = (file: string): string => join(secured.directory, file);
    await writeFile(path("rotating.pem"), "not yet");
    const backend = etcdBackend({
      endpoints: secured.endpoints,
      tls: { ...secured.tls, ca: path("rotating.pem") },
      env: {},
    });
    expect(await fails(backend)).toMatchObject({ code: "forbidden" });
    const again = etcdBackend({
      endpoints: secured.endpoints,
      tls: { ...secured.tls, ca: path("rotating.pem") },
      env: {},
    });
    const election = new Election({ name: "rotated", backend: again, ttlMs: 20_000 });
    backends.push(again);
    await expect(election.tryCampaign()).rejects.toMatchObject({ code: "forbidden" });
    await copyFile(secured.tls!.ca!, path("rotating.pem"));
    await until(async () => (await election.tryCampaign().catch(() => null))?.held === true);
    await election.close();
  });

  it("wrong CA", async () => {
    const error = await fails(
      etcdBackend({
        endpoints: secured.endpoints,
        tls: { cert: secured.tls?.cert, key: secured.tls?.key },
        env: {},
      }),
    );
    expect(error).toMatchObject({ code: "forbidden", retriable: false });
    expect(error.message).toMatch(/certificate of etcd at .* is not trusted .*give the CA/);
  });

  it("plain text to a TLS port", async () => {
    const error = await fails(etcdBackend({ endpoints: secured.endpoints, env: {} }));
    expect(error.message).toMatch(/TLS/);
  });

  it("TLS to a plain-text port", async () => {
    const error = await fails(etcdBackend({ endpoints: guarded.endpoints, tls: true, env: {} }));
    expect(error.message).toMatch(/no TLS connection to etcd at .*check that it serves TLS/);
  });

  it("a missing file", async () => {
    const error = await fails(
      etcdBackend({ endpoints: secured.endpoints, tls: { ca: "/nowhere/ca.pem" }, env: {} }),
    );
    expect(error).toMatchObject({ code: "invalid", retriable: false });
    expect(error.message).toContain("/nowhere/ca.pem");
  });

  it("a client certificate is demanded", async () => {
    const error = await fails(
      etcdBackend({ endpoints: secured.endpoints, tls: { ca: secured.tls?.ca }, env: {} }),
    );
    expect(error.message).toMatch(/client certificate/);
  });

  it("right password, and the environment's", async () => {
    await works(guardedBackend("root", SECRET));
    const env = { ETCD_ENDPOINT: endpoint(guarded), ETCD_USERNAME: "root", ETCD_PASSWORD: SECRET };
    await works(openEtcd("etcd://", { env }));
  });

  it("wrong password", async () => {
    const error = await fails(guardedBackend("root", `${SECRET}!`));
    expect(error).toMatchObject({ code: "forbidden", retriable: false });
    expect(error.message).toMatch(/refused the user name or password: check ETCD_USERNAME and ETCD_PASSWORD/);
  });

  it("no password at all", async () => {
    const error = await fails(etcdBackend({ endpoints: guarded.endpoints, env: {} }));
    expect(error).toMatchObject({ code: "forbidden", retriable: false });
    expect(error.message).toMatch(/demands authentication: set ETCD_USERNAME/);
  });

  it("missing role; a role for one prefix is enough", async () => {
    const error = await fails(guardedBackend("limited", "limited-password", "/other/"));
    expect(error).toMatchObject({ code: "forbidden", retriable: false });
    expect(error.message).toMatch(
      /denied permission: grant the user's role readwrite .*etcdctl role grant-permission/,
    );
    await works(guardedBackend("limited", "limited-password", "/app"));
  });

  it("unreachable endpoint", async () => {
    const error = await fails(etcdBackend({ endpoints: "127.0.0.1:1", env: {} }));
    expect(error).toMatchObject({ code: "unavailable", retriable: true });
    expect(error.message).toMatch(
      /cannot reach etcd at 127.0.0.1:1 \(ECONNREFUSED\): check that it runs there/,
    );
  });

  it("ttl below the server's minimum", async () => {
    const error = await fails(guardedBackend("root", SECRET), 3_000);
    expect(error).toMatchObject({ code: "invalid", retriable: false });
    expect(error.message).toMatch(
      /a lease of 3 s was asked for, but etcd grants no less than 8 s .*use a ttl of at least 8 s/,
    );
  });
});
