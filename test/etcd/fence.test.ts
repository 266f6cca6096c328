/** The fence in etcd itself passes the same suite as every other; its tokens come from real elections. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { etcdBackend, EtcdFence } from "../../src/backends/etcd/index.js";
import type { EtcdClient } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/index.js";
import type { BackendWithRecords, Term } from "../../src/index.js";
import { fencedResourceSuite } from "../fencing/suite.js";
import type { Resource } from "../fencing/suite.js";
import { recordResource } from "../fencing/rooms.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";

const limits = { signal: new AbortController().signal, limitMs: 5_000 };

describe.skipIf(!hasEtcd())("fencing on etcd", () => {
  let server: EtcdServer;
  let client: EtcdClient;
  let backend: BackendWithRecords;
  const elections: Election[] = [];
  let names = 0;

  beforeAll(async () => {
    server = await EtcdServer.start();
    client = server.client();
    backend = etcdBackend({ client, env: {} });
  });

  afterAll(async () => {
    await Promise.all(elections.map((election) => election.close()));
    await backend[Symbol.asyncDispose]();
    await client[Symbol.asyncDispose]();
    await server.stop();
  });

  function stand(name: string): Election {
    const election = new Election({ name, backend, ttlMs: 5_000 });
    elections.push(election);
    return election;
  }

  async function valuesUnder(prefix: string): Promise<string[]> {
    const range = {
      kind: "range",
      key: prefix,
      rangeEnd: `${prefix.slice(0, -1)}0`,
      sort: "oldest-first",
    } as const;
    const answer = await client.transaction({ when: [], then: [range], otherwise: [] }, limits);
    return answer.results[0]!.kvs.map((kv) => kv.value);
  }

  function resource(election: string, name: string): Resource {
    const fence = new EtcdFence({ client, election, name });
    return {
      add: (token, text) => fence.commit(token, [{ kind: "put", key: `list-${name}/${text}`, value: text }]),
      list: () => valuesUnder(`list-${name}/`),
      restarted: async () => resource(election, name),
    };
  }

  describe("guarded by the leader's key", () => {
    let election = "";
    fencedResourceSuite({
      name: "etcd",
      open: async () => {
        election ||= `fenced-${++names}`;
        return resource(election, `r${++names}`);
      },
      tokens: async () => {
        // The leader of the test before gives way.
        await Promise.all(elections.splice(0).map((previous) => previous.close()));
        const candidate = stand(election);
        let term: Term | undefined;
        return async () => {
          await term?.resign();
          term = await candidate.campaign();
          const { token } = term;
          return token;
        };
      },
    });
  });

  describe("records of the etcd backend", () => {
    fencedResourceSuite({
      name: "records",
      open: async () => recordResource(backend.records, `list-${++names}`),
    });
  });

  test("a leader whose key is gone is refused even before there is a successor", async () => {
    const name = `fenced-${++names}`;
    const fence = new EtcdFence({ client, election: name });
    const term = await stand(name).campaign();
    await term.guard(fence).put(`${name}-data`, "mine");
    await term.resign();
    await expect(fence.check(term.token)).rejects.toMatchObject({ code: "not-leader" });
    await expect(term.guard(fence).put(`${name}-data`, "late")).rejects.toMatchObject({ code: "not-leader" });
  });
});
