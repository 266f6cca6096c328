/** Tokens that age, that etcd forgets, and that a change of roles makes stale. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import type { CallLimits, TransactionAnswer, WatchNotice } from "../../src/backends/etcd/client.js";
import { parseEndpoint } from "../../src/backends/etcd/client/endpoint.js";
import { GrpcEtcdClient } from "../../src/backends/etcd/client/grpc-client.js";
import { systemClock } from "../../src/kit/clock.js";
import { type Clock } from "../../src/seam/clock.js";
import { Election } from "../../src/election/election.js";
import { isConclaveError } from "../../src/kit/errors.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { Http2Tap } from "../support/http2-tap.js";
import { until } from "../support/until.js";

const PASSWORD = "correct horse";
/** Beyond the age at which a token is renewed. */
const AGED_MS = 151_000;
const limits = (limitMs = 5_000): CallLimits => ({ signal: new AbortController().signal, limitMs });
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The system's clock, except that it can be put forward. */
function leapingClock(): { clock: Clock; leap(ms: number): void } {
  let ahead = 0;
  const clock: Clock = {
    now: () => systemClock.now() + ahead,
    wall: () => systemClock.wall(),
    boot: () => systemClock.boot(),
    after: (delayMs, callback) => systemClock.after(delayMs, callback),
    random: () => systemClock.random(),
    uniqueId: () => systemClock.uniqueId(),
  };
  return { clock, leap: (ms) => (ahead += ms) };
}

describe.skipIf(!hasEtcd())("etcd: tokens", () => {
  /** Forgets a token after two idle seconds. */
  let forgetful: EtcdServer;
  /** Signs tokens that are good for four seconds. */
  let signing: EtcdServer;
  const open: AsyncDisposable[] = [];
  let keys = 0;

  beforeAll(async () => {
    [forgetful, signing] = await Promise.all([
      EtcdServer.start({ rootPassword: PASSWORD, tokenTtl: 2 }),
      EtcdServer.start({ rootPassword: PASSWORD, jwtTtl: 4 }),
    ]);
  });
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
  });
  afterAll(async () => {
    await Promise.all([forgetful.stop(), signing.stop()]);
  });

  function clientOf(
    server: EtcdServer,
    more: { endpoint?: string; clock?: Clock; user?: string } = {},
  ): GrpcEtcdClient {
    const client = new GrpcEtcdClient({
      endpoints: [parseEndpoint(more.endpoint ?? server.endpoints[0]!)],
      credentials: { username: more.user ?? "root", password: PASSWORD },
      clock: more.clock,
    });
    open.push(client);
    return client;
  }

  /** Puts a key that must not be there yet: a second time it would not succeed. */
  const create = (client: GrpcEtcdClient, key = `/tokens/${++keys}`): Promise<TransactionAnswer> =>
    client.transaction(
      {
        when: [{ target: "create", key, value: 0n }],
        then: [{ kind: "put", key, value: "" }],
        otherwise: [],
      },
      limits(),
    );

  const refusals = (server: EtcdServer): Promise<number> =>
    server.counted("grpc_server_handled_total", 'grpc_code="Unauthenticated"');
  const fetched = (server: EtcdServer): Promise<number> =>
    server.counted("grpc_server_handled_total", 'grpc_method="Authenticate"', 'grpc_code="OK"');

  it("is renewed by its age, while the old one still serves: no call is refused", async () => {
    const { clock, leap } = leapingClock();
    const client = clientOf(signing, { clock });
    await create(client);
    const before = { refusals: await refusals(signing), fetched: await fetched(signing) };
    for (let i = 0; i < 3; i++) {
      await pause(2_000); // three tokens' half lives
      leap(AGED_MS);
      expect((await create(client)).succeeded).toBe(true);
      const renewed = before.fetched + i + 1;
      await until(async () => (await fetched(signing)) === renewed);
      expect((await create(client)).succeeded).toBe(true);
    }
    expect(await refusals(signing)).toBe(before.refusals);
    expect(await fetched(signing)).toBe(before.fetched + 3);
  });

  it("forgotten by etcd: fetched anew, and the request is carried out once", async () => {
    const client = clientOf(forgetful);
    await create(client);
    const before = await refusals(forgetful);
    await pause(4_500);
    const answer = await create(client);
    expect(answer.succeeded).toBe(true);
    expect(await refusals(forgetful)).toBe(before + 1);
  });

  it("forgotten between the opening of a stream ahead and its use", async () => {
    const tap = await Http2Tap.start(parseEndpoint(forgetful.endpoints[0]!).port);
    open.push({ [Symbol.asyncDispose]: () => tap.close() });
    const client = clientOf(forgetful, { endpoint: tap.endpoint });
    client.watch({ key: "/tokens/w", startRevision: 1n }, () => {});
    await until(() => tap.open.length === 1);
    await create(client);
    await until(() => tap.idle.length === 1);
    const [stream] = tap.idle;
    await pause(4_500);
    const many = await Promise.all(Array.from({ length: 20 }, () => create(client)));
    expect(tap.sent(stream!)).toBe(1); // it was used, and refused
    expect(many.every((answer) => answer.succeeded)).toBe(true);
    await until(() => tap.open.length === 2 && tap.idle.length === 1);
  });

  it("aged between the opening of a stream ahead and its use: the old token's stream is given back", async () => {
    const tap = await Http2Tap.start(parseEndpoint(forgetful.endpoints[0]!).port);
    open.push({ [Symbol.asyncDispose]: () => tap.close() });
    const { clock, leap } = leapingClock();
    const client = clientOf(forgetful, { endpoint: tap.endpoint, clock });
    client.watch({ key: "/tokens/w", startRevision: 1n }, () => {});
    await until(() => tap.open.length === 1);
    await create(client);
    await until(() => tap.idle.length === 1);
    const before = await fetched(forgetful);
    leap(AGED_MS);
    await client.range({ key: "/tokens/w" }, limits()); // asks for the new token
    await until(async () => (await fetched(forgetful)) === before + 1);
    await pause(20);
    const [stream] = tap.idle;
    expect((await create(client)).succeeded).toBe(true);
    expect([tap.sent(stream!), tap.resetByClient(stream!)]).toEqual([0, true]);
    await until(() => tap.open.length === 2 && tap.idle.length === 1);
  });

  it("made stale by a change of roles: the next request is carried out, once", async () => {
    const client = clientOf(signing);
    await create(client);
    await signing.etcdctl("role", "add", "passing");
    expect((await create(client)).succeeded).toBe(true);
  });

  it("a watch stream outlives its token: old watches go on, new ones are let in", async () => {
    const client = clientOf(forgetful);
    const seen: string[] = [];
    const follow = (key: string, startRevision: bigint): (() => void) =>
      client.watch({ key, startRevision }, (notice: WatchNotice) => {
        if (notice.kind === "events") seen.push(...notice.events.map(({ kv }) => `${kv.key}=${kv.value}`));
        else seen.push(notice.kind);
      });
    const { revision } = await create(client);
    follow("/outlive/a", revision + 1n);
    await client.put("/outlive/a", "1", undefined, limits());
    await until(() => seen.length === 1);
    const other = clientOf(forgetful);
    await pause(4_500);
    await other.put("/outlive/a", "2", undefined, limits());
    await until(() => seen.length === 2);
    await other.put("/outlive/b", "1", undefined, limits());
    follow("/outlive/b", revision + 1n); // on the old stream, whose token is gone
    await other.put("/outlive/a", "3", undefined, limits());
    await until(() => seen.length === 4);
    expect(seen.slice(0, 2)).toEqual(["/outlive/a=1", "/outlive/a=2"]);
    expect(seen.slice(2).sort()).toEqual(["/outlive/a=3", "/outlive/b=1"]);
  });

  it("a watch that is not permitted fails, once and for all, and costs one token", async () => {
    await forgetful.etcdctl("user", "add", `nobody:${PASSWORD}`);
    await forgetful.etcdctl("role", "add", "narrow");
    await forgetful.etcdctl("role", "grant-permission", "--prefix=true", "narrow", "readwrite", "/narrow/");
    await forgetful.etcdctl("user", "grant-role", "nobody", "narrow");
    const client = clientOf(forgetful, { user: "nobody" });
    const failed: WatchNotice[] = [];
    const good: WatchNotice[] = [];
    client.watch({ key: "/narrow/x", startRevision: 1n }, (notice) => good.push(notice));
    await client.put("/narrow/x", "1", undefined, limits());
    await until(() => good.length === 1);
    const before = await fetched(forgetful);
    for (let i = 0; i < 50; i++)
      client.watch({ key: `/forbidden/${i}`, startRevision: 1n }, (notice) => failed.push(notice));
    await until(() => failed.length === 50);
    expect(failed.every((notice) => notice.kind === "failed")).toBe(true);
    expect(failed[0]).toMatchObject({ error: { code: "forbidden" } });
    expect(await fetched(forgetful)).toBe(before + 1);
    await client.put("/narrow/x", "2", undefined, limits());
    await until(() => good.length === 2); // the others are not disturbed
  });

  it("a restart forgets all tokens: whoever waits still hears, and wins", { timeout: 60_000 }, async () => {
    const stand = (): Election => {
      const election = new Election({
        name: "/restart",
        backend: etcdBackend({
          endpoints: forgetful.endpoints,
          username: "root",
          password: PASSWORD,
          env: {},
        }),
        ttlMs: 20_000,
        closeBackend: true,
      });
      open.push({ [Symbol.asyncDispose]: () => election.close() });
      return election;
    };
    const [first, second] = [stand(), stand()];
    const term = await first.campaign();
    const errors: unknown[] = [];
    // A look may be under way when the server is killed: that passes. Nothing else may go wrong.
    second.on("error", ({ error }) => {
      if (!isConclaveError(error) || !error.retriable) errors.push(error);
    });
    const next = second.campaign();
    const look = clientOf(forgetful);
    const queue = async (): Promise<number> =>
      (await look.range({ key: "/restart/", rangeEnd: "/restart0" }, limits())).length;
    await until(async () => (await queue()) === 2);
    await forgetful.members[0]!.kill();
    forgetful.members[0]!.start();
    await forgetful.ready();
    await pause(3_000); // the streams are back
    const resignedAt = performance.now();
    await term.resign();
    expect((await next).held).toBe(true);
    expect(performance.now() - resignedAt).toBeLessThan(3_000); // by the watch, not by a renewal seven seconds later
    expect(errors).toEqual([]);
  });
});
