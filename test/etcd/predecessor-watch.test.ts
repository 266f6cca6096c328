/** Watches that begin now, and what happens just before they do. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { EtcdClient, WatchNotice } from "../../src/backends/etcd/client.js";
import { parseEndpoint } from "../../src/backends/etcd/client/endpoint.js";
import { GrpcEtcdClient } from "../../src/backends/etcd/client/grpc-client.js";
import { type EtcdLayout, etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/election/election.js";
import { Bench } from "../support/contest.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { until } from "../support/until.js";

const TTL = 60_000;
const bench = new Bench();

describe.skipIf(!hasEtcd())("etcd: a watch from now on", () => {
  let server: EtcdServer;
  let client: GrpcEtcdClient;
  const limits = { signal: new AbortController().signal, limitMs: 5_000 };

  beforeAll(async () => {
    server = await EtcdServer.start();
    client = server.client();
  });
  afterEach(() => bench.cleanUp());
  afterAll(async () => {
    await client[Symbol.asyncDispose]();
    await server.stop();
  });

  const put = (key: string, value: string): Promise<void> => client.put(key, value, undefined, limits);

  it("says where it begins, once, and leaves nothing out from there, whatever breaks", async () => {
    const proxy = await bench.proxyFor(server.endpoints[0]!);
    const watcher = new GrpcEtcdClient({ endpoints: [parseEndpoint(proxy.endpoint)] });
    bench.onEnd(async () => watcher[Symbol.asyncDispose]());
    await put("now", "before");
    proxy.refuse(); // it cannot even begin
    const notices: WatchNotice[] = [];
    watcher.watch({ key: "now" }, (notice) => notices.push(notice));
    await put("now", "while it could not");
    proxy.heal();
    await until(() => notices.length === 1);
    const { revision } = await client.transaction(
      { when: [], then: [{ kind: "range", key: "now" }], otherwise: [] },
      limits,
    );
    expect(notices).toEqual([{ kind: "created", revision }]);
    const values = (): string[] =>
      notices.flatMap((notice) => (notice.kind === "events" ? notice.events.map(({ kv }) => kv.value) : []));
    for (let i = 0; i < 40; i++) {
      if (i % 10 === 5) proxy.cut();
      await put("now", String(i));
    }
    await until(() => values().length >= 40);
    expect(values()).toEqual(Array.from({ length: 40 }, (_, i) => String(i)));
    expect(notices.filter(({ kind }) => kind === "created")).toHaveLength(1);
  });

  /** A client whose watches over one key begin only after something else has happened. */
  function held(key: (watched: string) => boolean, first: () => Promise<unknown>): EtcdClient {
    const own = server.client();
    bench.onEnd(async () => own[Symbol.asyncDispose]());
    return {
      transaction: (...args) => own.transaction(...args),
      leaseGrant: (...args) => own.leaseGrant(...args),
      leaseKeepAlive: (...args) => own.leaseKeepAlive(...args),
      leaseRevoke: (...args) => own.leaseRevoke(...args),
      watch: (request, sink) => {
        if (!key(request.key)) return own.watch(request, sink);
        let unwatch: (() => void) | undefined = () => {};
        void first().then(() => {
          if (unwatch !== undefined) unwatch = own.watch(request, sink);
        });
        return () => {
          unwatch?.();
          unwatch = undefined;
        };
      },
      [Symbol.asyncDispose]: async () => {},
    };
  }

  it.each<EtcdLayout>(["queue", "key"])(
    "the leader is gone between the look and the watch: not left to the next renewal (%s)",
    async (layout) => {
      const name = `/gap/${layout}`;
      const first = new Election({
        name,
        backend: etcdBackend({ endpoints: server.endpoints, env: {}, layout }),
        ttlMs: TTL,
        closeBackend: true,
      });
      bench.onEnd(() => first.close());
      const term = await first.campaign();
      const [leader] = await client.range({ key: name, rangeEnd: `${name}0` }, limits);
      const backend = etcdBackend({
        client: held(
          (watched) => watched === leader?.key,
          () => term.resign(),
        ),
        layout,
      });
      const second = new Election({ name, backend, ttlMs: TTL, closeBackend: true });
      bench.onEnd(() => second.close());
      const began = performance.now();
      const next = await second.campaign();
      expect(next.token > term.token).toBe(true);
      expect(performance.now() - began).toBeLessThan(TTL / 6);
    },
  );
});
