/** What users can do wrong, each with one clear error; and no token in any of them. */
import { writeFile } from "node:fs/promises";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HttpTransport } from "../../src/backends/consul/client/transport.js";
import { consulBackend, openConsul } from "../../src/backends/consul/index.js";
import type { ConsulOptions, ConsulResponse } from "../../src/backends/consul/index.js";
import { Election, isConclaveError } from "../../src/index.js";
import type { ConclaveError } from "../../src/index.js";
import { consulElection } from "../support/consul-elections.js";
import { ConsulServer, hasConsul } from "../support/consul-server.js";

async function refusal(
  server: { address: string },
  consul: ConsulOptions,
  ttlMs = 2_000,
): Promise<ConclaveError> {
  await using election = consulElection(server, "jobs", { consul, ttlMs });
  const error: unknown = await election.tryCampaign().catch((thrown: unknown) => thrown);
  if (!isConclaveError(error)) throw new Error(`no error, but ${String(error)}`);
  return error;
}

describe.skipIf(!hasConsul())("mistakes on a real Consul", () => {
  let server: ConsulServer;
  let open: ConsulServer;
  beforeAll(async () => {
    [server, open] = await Promise.all([
      ConsulServer.start({ acl: true }),
      ConsulServer.start({ ttlMin: 10, tls: "mutual" }),
    ]);
  });
  afterAll(() => Promise.all([server.stop(), open.stop()]));

  it("no ACL token, an unknown one, one without rights for keys or sessions", async () => {
    const missing = await refusal(server, {});
    expect(missing).toMatchObject({ code: "forbidden", retriable: false });
    expect(missing.message).toContain("CONSUL_HTTP_TOKEN");
    const token = "11111111-2222-3333-4444-555555555555";
    const unknown = await refusal(server, { token });
    expect(unknown.code).toBe("forbidden");
    expect(unknown.message).toContain("does not know this ACL token");
    expect(unknown.message).not.toContain(token);
    const keysOnly = await server.token('key_prefix "test/" { policy = "write" }');
    expect(await refusal(server, { token: keysOnly })).toMatchObject({ code: "forbidden" });
    const sessionsOnly = await server.token('session_prefix "" { policy = "write" }');
    expect(await refusal(server, { token: sessionsOnly })).toMatchObject({ code: "forbidden" });
    const readOnly = await server.token(
      'key_prefix "test/" { policy = "read" } session_prefix "" { policy = "write" }',
    );
    expect(await refusal(server, { token: readOnly })).toMatchObject({ code: "forbidden" });
  });

  it("the rights that the docs name are enough; the token may stand in a file", async () => {
    const token = await server.token(
      'key_prefix "test/" { policy = "write" } session_prefix "" { policy = "write" }',
    );
    const tokenFile = join(server.directory, "token");
    await writeFile(tokenFile, `${token}\n`);
    await using election = consulElection(server, "jobs", { consul: { tokenFile } });
    const term = await election.campaign();
    await term.proclaim("here");
    await term.resign();
  });

  it("a datacenter or a namespace that is not there", async () => {
    const dc = await refusal(open, { datacenter: "nowhere" });
    expect(dc).toMatchObject({ code: "invalid", retriable: false });
    expect(dc.message).toContain("check dc");
    expect(await refusal(open, { namespace: "team" })).toMatchObject({ code: "invalid" });
  });

  it("a ttl below what the servers keep is refused by Consul, and the bounds are told", async () => {
    const error = await refusal(open, {});
    expect(error).toMatchObject({ code: "invalid", retriable: false });
    expect(error.message).toContain("10s");
    const early = (): Election =>
      new Election({ name: "x", ttlMs: 2_000, backend: consulBackend({ env: {} }) });
    expect(early).toThrow(/10000 ms/);
  });

  it("a key that is no lock is left alone", async () => {
    await open.api("PUT", "/v1/kv/test/jobs/.lock?flags=7", "precious");
    const error = await refusal(open, {}, 10_000);
    expect(error).toMatchObject({ code: "conflict", retriable: false });
    expect(await open.run("kv", "get", "test/jobs/.lock")).toContain("precious");
    await open.api("DELETE", "/v1/kv/test/jobs/.lock");
  });

  it("TLS: with the right files it leads, with others it says that it cannot talk", async () => {
    const address = `localhost:${open.entry.ports.https}`;
    await using election = consulElection({ address }, "tls", { consul: { tls: open.tls! }, ttlMs: 10_000 });
    await (await election.campaign()).resign();
    const wrong = await refusal({ address }, { tls: true }, 10_000);
    expect(wrong.code).toBe("unavailable");
    const anonymous = await refusal({ address }, { tls: { ca: open.tls!.ca } }, 10_000);
    expect(anonymous.code).toBe("unavailable");
  });
});

describe("answers that are not Consul's", () => {
  const SESSION = "0e000000-0000-0000-0000-00000000000e";
  const BIG = 9_007_199_254_740_993n; // 2^53 + 1

  const backendOn = (answer: (path: string) => Partial<ConsulResponse>): ReturnType<typeof consulBackend> =>
    consulBackend({
      env: {},
      send: async ({ path }) => ({
        status: 200,
        headers: { "x-consul-index": "5" },
        text: "",
        ...answer(path),
      }),
    });
  const stand = async (backend: ReturnType<typeof consulBackend>): Promise<unknown> => {
    const candidacy = {
      election: "x",
      candidate: "c",
      value: "",
      ttlMs: 10_000,
      retryMs: 100,
      attemptMs: 500,
    };
    try {
      const signal = new AbortController().signal;
      return await backend.campaign(candidacy, { wait: false, signal });
    } catch (error) {
      return error;
    } finally {
      await backend[Symbol.asyncDispose]();
    }
  };
  const sane = (path: string, txn: string): Partial<ConsulResponse> => {
    if (path.startsWith("/v1/session/create")) return { text: `{"ID":"${SESSION}"}` };
    if (path.startsWith("/v1/kv/")) return { status: 404 };
    return path.startsWith("/v1/txn") ? { text: txn } : { text: `[{"ID":"${SESSION}"}]` };
  };
  const granted = (index: bigint | string, session = SESSION, key = "x/.lock"): string =>
    `{"Results":[{"KV":{"LockIndex":1,"Key":"${key}","Flags":3304740253564472344,"Value":null,"Session":"${session}","CreateIndex":9,"ModifyIndex":${index}}}],"Errors":null}`;

  it("numbers beyond 2^53 are exact", async () => {
    expect(await stand(backendOn((path) => sane(path, granted(BIG))))).toMatchObject({ token: BIG });
  });

  it.each([
    ["no JSON", "<html>"],
    ["nothing", ""],
    ["another key", granted(7n, SESSION, "y/.lock")],
    ["another session", granted(7n, "other")],
    ["an index that is none", granted('"-1"')],
    ["no result", '{"Results":[],"Errors":null}'],
  ])("a grant with %s is no grant", async (_, txn) => {
    expect(await stand(backendOn((path) => sane(path, txn)))).toMatchObject({ code: "unavailable" });
  });

  it("a 404 of something else does not end a session, a key of another name is not believed", async () => {
    expect(
      await stand(
        backendOn((path) => (path.startsWith("/v1/kv/") ? { status: 404, headers: {} } : sane(path, ""))),
      ),
    ).toMatchObject({ code: "invalid" });
    const other = '[{"Key":"z","Flags":0,"Value":null,"ModifyIndex":3}]';
    expect(
      await stand(backendOn((path) => (path.startsWith("/v1/kv/") ? { text: other } : sane(path, "")))),
    ).toMatchObject({ code: "unavailable" });
  });
});

describe("URLs and options", () => {
  it.each([
    ["consul://user:secret@host:8500/x", /CONSUL_HTTP_TOKEN/],
    ["consul://host:8500/x?dcs=1", /dcs/],
    ["consul://host:8500/x?dc=", /empty/],
    ["consul://host:8500/x?layout=queue", /layout/],
    ["consul://host:8500/x?lockDelay=2m", /lockDelay/],
    ["consul://host:8500/x?lockDelay=90s", /60000/],
    ["consuls://host:8500/x?cert=/c.pem", /without its key/],
    ["consul://host:8500/a//b", /prefix/],
  ])("%s is refused", (url, message) => {
    expect(() => openConsul(url, { env: {} })).toThrow(message);
    expect(() => openConsul(url, { env: {} })).not.toThrow(/secret/);
  });

  it("names that Consul's paths do not take are refused", async () => {
    await using backend = consulBackend({ env: {} });
    for (const name of ["a//b", "../a", "/a", "a/", "a\u200bb", "conclave.records/x"])
      expect(() => backend.observe(name, { signal: AbortSignal.abort(), pollMs: 1, attemptMs: 1 })).toThrow(
        /election name/,
      );
  });
});

describe("an agent that is not there", () => {
  it("what cannot be reached and what to check; nothing was sent", async () => {
    const error = await refusal({ address: "127.0.0.1:1" }, {});
    expect(error.code).toBe("unavailable");
    expect(error.message).toMatch(
      /^Consul at 127\.0\.0\.1:1 cannot be reached \(.*ECONNREFUSED.*\): check host, port, TLS settings and that an agent runs there$/,
    );
  });

  it("an answer that did not come: only of what may have been written the effect is unknown", async () => {
    const server = createServer((request) => request.socket.destroy()).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const transport = new HttpTransport({ host: "127.0.0.1", port }, undefined);
    const { signal } = new AbortController();
    const ask = (method: "GET" | "PUT"): Promise<unknown> =>
      transport.send({ method, path: "/v1/kv/x", headers: {}, long: false }, signal);
    await expect(ask("GET")).rejects.toThrow(/^no answer from Consul at 127\.0\.0\.1:\d+ \([^)]*\)$/);
    await expect(ask("PUT")).rejects.toThrow(/; whether the request took effect is unknown$/);
    transport.close();
    server.close();
  });
});
