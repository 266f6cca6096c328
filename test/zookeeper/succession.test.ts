/** What moves in the queue when leadership is handed over, or a candidate stands aside, on a real ZooKeeper; beside the conformance suite. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ZooKeeperConnection } from "../../src/backends/zookeeper/client.js";
import { zookeeperBackend } from "../../src/backends/zookeeper/index.js";
import { rawClient, type RawClient } from "../support/zookeeper-raw.js";
import { type Standing, type StandingOptions, Succession } from "../support/succession.js";
import { until } from "../support/until.js";
import { hasZooKeeper, ZooKeeperServer } from "../support/zookeeper-server.js";

const limits = { signal: new AbortController().signal, limitMs: 5_000 };
const TTL = { ttlMs: 10_000 };

describe.skipIf(!hasZooKeeper())("ZooKeeper: who leads next", () => {
  let server: ZooKeeperServer;
  let client: RawClient;
  let connection: ZooKeeperConnection;
  let succession: Succession;
  let names = 0;

  beforeAll(async () => {
    server = await ZooKeeperServer.start();
    client = await rawClient(server.hosts[0]!);
    connection = client.connection;
  });
  afterEach(() => succession.close());
  afterAll(async () => {
    await client.close();
    await server.stop();
  });

  const parent = (): string => `/${succession.election}`;
  const sequence = (name: string): number => Number(name.slice(-10));
  const queue = async (): Promise<string[]> =>
    [...((await connection.getChildren(parent(), limits)) ?? [])].toSorted(
      (a, b) => sequence(a) - sequence(b),
    );

  /** Candidates in this order in the queue; the first leads. */
  async function stand(
    ids: readonly string[],
    options: Record<string, StandingOptions> = {},
  ): Promise<Standing[]> {
    succession = new Succession(`next${++names}`, () => zookeeperBackend({ hosts: server.hosts, env: {} }));
    const all: Standing[] = [];
    for (const [i, id] of ids.entries()) {
      all.push(await succession.join(id, { ...TTL, ...options[id] }));
      await until(async () => (await queue()).length === i + 1);
    }
    await all[0]!.leads();
    return all;
  }

  it("the one that is named leads next, though it stands last; nobody leads in between", async () => {
    const [leader, a, b, heir] = await stand(["leader", "a", "b", "heir"]);
    const token = (await leader!.leads()).token;
    await leader!.resign({ candidate: "heir", forMs: 5_000 });
    expect((await heir!.leads()).token).toBeGreaterThan(token);
    await until(async () => (await queue()).length === 3);
    expect(succession.led).toEqual(["leader", "heir"]);
    const notes = async () => (await connection.getChildren("/conclave.next", limits)) ?? [];
    await until(async () => !(await notes()).some((name) => name.startsWith("heir.")));
    await heir!.resign({ candidate: "b-0a1b2c", forMs: 5_000 });
    await b!.leads();
    await b!.resign();
    await a!.leads();
    expect(succession.led).toEqual(["leader", "heir", "b", "a"]);
  });

  it.each([
    ["far back", ["leader", "a", "heir", "b"]],
    ["next in line", ["leader", "heir", "a", "b"]],
  ])("the one that is named leads although it would let others go first (%s)", async (_, ids) => {
    const [leader, ...others] = await stand(ids, { heir: { standBackMs: () => 60_000 } });
    const heir = others.find(({ id }) => id === "heir")!;
    await leader!.resign({ candidate: "heir", forMs: 5_000 });
    await heir.leads();
    expect(succession.led).toEqual(["leader", "heir"]);
  });

  it("a heir that is dead keeps nobody waiting, and nobody leaves its place for it", async () => {
    const [leader, a] = await stand(["leader", "a", "b"]);
    const dead = `${parent()}/_c_00000000-0000-0000-0000-000000000000-latch-`;
    const planted = await connection.create(dead, "dead-0a1b2c\nx", "ephemeral-sequential", limits);
    const places = (await queue()).slice(1);
    const from = performance.now();
    await leader!.resign({ candidate: "dead", forMs: 300 });
    await a!.leads();
    expect(performance.now() - from).toBeLessThan(2_000);
    expect(await queue()).toEqual(places);
    await connection.remove(planted.path, limits);
  });

  it("a heir that does not stand in the queue changes nothing", async () => {
    const [leader, a] = await stand(["leader", "a", "b"]);
    await leader!.resign({ candidate: "nobody", forMs: 60_000 });
    await a!.leads();
    expect(succession.led).toEqual(["leader", "a"]);
  });

  it("another program's candidate ahead of the heir leads when its turn comes", async () => {
    const [leader] = await stand(["leader"]);
    const foreign = `${parent()}/_c_00000000-0000-0000-0000-000000000001-latch-`;
    const planted = await connection.create(foreign, "curator", "ephemeral-sequential", limits);
    await succession.join("heir", TTL);
    await until(async () => (await queue()).length === 3);
    await leader!.resign({ candidate: "heir", forMs: 300 });
    expect(`${parent()}/${(await queue())[0]}`).toBe(planted.path);
    await connection.remove(planted.path, limits);
    await until(() => succession.led.includes("heir"));
  });

  it("a note that comes late, or from somebody else, moves nobody", async () => {
    const [leader, a, b] = await stand(["leader", "a", "b"]);
    const places = await queue();
    const path = `/conclave.next/heir.${succession.election}`;
    await connection.create("/conclave.next", "", "persistent", limits).catch(() => {});
    await connection.create(path, "", "persistent", limits);
    for (const text of [
      "nonsense",
      "x".repeat(5_000),
      `ready _c_gone-latch-0 ${places[2]}`,
      `ready ${places[0]} elsewhere`,
    ])
      await connection.setData(path, text, -1, limits);
    await connection.remove(path, limits);
    await leader!.resign();
    await a!.leads();
    expect(await queue()).toEqual(places.slice(1));
    await a!.resign();
    await b!.leads();
  });

  it("if all stand back one of them leads, after one round; who is alone keeps its place", async () => {
    const low = { standBackMs: () => 60_000 };
    const [leader, a] = await stand(["leader", "a", "b", "c"], { a: low, b: low, c: low });
    await leader!.resign();
    await until(() => succession.led.length === 2);
    expect(succession.led).toEqual(["leader", "a"]);
    await succession.close();
    const [last, alone] = await stand(["leader", "alone"], { alone: low });
    const place = (await queue())[1];
    await last!.resign();
    await alone!.leads();
    expect(await queue()).toEqual([place]);
    expect(a!.id).toBe("a");
  });
});
