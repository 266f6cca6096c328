/** What moves in the queue when leadership is handed over, or a candidate stands aside, on a real etcd; beside the conformance suite. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { KeyValue } from "../../src/backends/etcd/client.js";
import type { GrpcEtcdClient } from "../../src/backends/etcd/client/grpc-client.js";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { type Standing, type StandingOptions, Succession } from "../support/succession.js";
import { until } from "../support/until.js";

const limits = { signal: new AbortController().signal, limitMs: 5_000 };

describe.skipIf(!hasEtcd())("etcd: who leads next", () => {
  let server: EtcdServer;
  let client: GrpcEtcdClient;
  let succession: Succession;
  let names = 0;

  beforeAll(async () => {
    server = await EtcdServer.start();
    client = server.client();
  });
  afterEach(() => succession.close());
  afterAll(async () => {
    await client[Symbol.asyncDispose]();
    await server.stop();
  });

  const queue = (): Promise<readonly KeyValue[]> =>
    client.range(
      { key: `${succession.election}/`, rangeEnd: `${succession.election}0`, sort: "oldest-first" },
      limits,
    );
  const transactions = (): Promise<number> =>
    server.counted("grpc_server_handled_total", 'grpc_method="Txn"', 'grpc_code="OK"');

  /** Candidates in this order in the queue; the first leads. */
  async function stand(
    ids: readonly string[],
    options: Record<string, StandingOptions> = {},
  ): Promise<Standing[]> {
    succession = new Succession(`next/${++names}`, () =>
      etcdBackend({ endpoints: server.endpoints, env: {} }),
    );
    const all: Standing[] = [];
    for (const [i, id] of ids.entries()) {
      all.push(await succession.join(id, options[id]));
      await until(async () => (await queue()).length === i + 1);
    }
    await all[0]!.leads();
    return all;
  }

  /** A key of the queue that nobody minds: of another program, or with an identity, of a candidate that is dead. */
  async function plant(identity?: string): Promise<bigint> {
    const { id } = await client.leaseGrant(60n, limits);
    const hex = id.toString(16);
    await client.put(`${succession.election}/${hex}`, "planted", id, limits);
    if (identity !== undefined)
      await client.put(`conclave.candidates/${hex}/${succession.election}`, identity, id, limits);
    return id;
  }

  it("the one that is named leads next, though it stands last; nobody leads in between", async () => {
    const [leader, a, b, heir] = await stand(["leader", "a", "b", "heir"]);
    const token = (await leader!.leads()).token;
    await leader!.resign({ candidate: "heir", forMs: 5_000 });
    expect((await heir!.leads()).token).toBeGreaterThan(token);
    await until(async () => (await queue()).length === 3);
    expect(succession.led).toEqual(["leader", "heir"]);
    await heir!.resign();
    await Promise.race([a!.leads(), b!.leads()]);
    expect(
      await client.range({ key: `conclave.candidates/heir/`, rangeEnd: "conclave.candidates/heir0" }, limits),
    ).toEqual([]);
  });

  it("an ordinary handover is two transactions, with others in the queue or not", async () => {
    const [leader, a] = await stand(["leader", "a", "b"]);
    await new Promise((resolve) => setTimeout(resolve, 300)); // watches stand, and were looked at once more
    const before = await transactions();
    await leader!.resign();
    await a!.leads();
    expect((await transactions()) - before).toBe(2);
  });

  it("a heir that is dead keeps nobody waiting, and nobody leaves its place for it", async () => {
    const [leader, a, b] = await stand(["leader", "a", "b"]);
    await plant("dead-0a1b2c");
    const places = async (): Promise<bigint[]> =>
      (await queue()).slice(-3).map(({ createRevision }) => createRevision);
    const before = await places();
    const from = performance.now();
    await leader!.resign({ candidate: "dead", forMs: 300 });
    await a!.leads();
    expect(performance.now() - from).toBeLessThan(2_000);
    expect(await places()).toEqual(before);
    await a!.resign();
    await b!.leads();
  });

  it("a heir that does not stand in the queue changes nothing", async () => {
    const [leader, a] = await stand(["leader", "a", "b"]);
    await leader!.resign({ candidate: "nobody", forMs: 60_000 });
    await a!.leads();
    expect(succession.led).toEqual(["leader", "a"]);
  });

  it("another program's candidate ahead of the heir leads when its turn comes", async () => {
    const [leader] = await stand(["leader"]);
    const foreign = await plant();
    await succession.join("heir");
    await until(async () => (await queue()).length === 3);
    await leader!.resign({ candidate: "heir", forMs: 60_000 });
    expect((await queue())[0]!.lease).toBe(foreign);
    await client.leaseRevoke(foreign, limits);
    await until(() => succession.led.includes("heir"));
  });

  it("what is written late, or by somebody else, moves nobody", async () => {
    const [leader, a, b] = await stand(["leader", "a", "b"]);
    const places = await queue();
    const heirKey = `conclave.candidates/heir/${succession.election}`;
    const { lease } = places[0]!;
    const texts = [
      "nonsense",
      "x".repeat(10_000),
      `1 ${places[2]!.createRevision} ${places[2]!.key}`,
      `${places[0]!.createRevision} ${places[2]!.createRevision} elsewhere/7`,
      `${places[0]!.createRevision} 99999999999 ${places[2]!.key}`,
    ];
    for (const text of texts) {
      await client.put(heirKey, text, lease, limits);
      const before = await transactions();
      const touch = { kind: "touch", key: places[1]!.key } as const;
      await client.transaction({ when: [], then: [touch], otherwise: [] }, limits);
      // The touch itself; then it has read the note, perhaps tried, and has looked again.
      await until(async () => (await transactions()) - before >= 3);
    }
    await until(async () => (await queue()).length === 3);
    expect((await queue()).map(({ createRevision }) => createRevision)).toEqual(
      places.map(({ createRevision }) => createRevision),
    );
    await leader!.resign();
    await a!.leads();
    await a!.resign();
    await b!.leads();
    expect(succession.led).toEqual(["leader", "a", "b"]);
  });

  it("if all stand back one of them leads, after one round", async () => {
    const low = { standBackMs: () => 60_000 };
    const [leader] = await stand(["leader", "a", "b", "c"], { a: low, b: low, c: low });
    await leader!.resign();
    await until(() => succession.led.length === 2);
    expect(succession.led).toEqual(["leader", "a"]);
  });

  it("who is alone keeps its place", async () => {
    const [leader, alone] = await stand(["leader", "alone"], { alone: { standBackMs: () => 60_000 } });
    const place = (await queue())[1]!.createRevision;
    await leader!.resign();
    expect((await alone!.leads()).token).toBe(place);
  });
});
