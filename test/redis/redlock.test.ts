/** The layout of redlock and ShedLock: each keeps the other out. Without fencing tokens, and only if that is accepted. */
import { Redis } from "ioredis";
import Redlock from "redlock";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, test } from "vitest";
import { openRedis } from "../../src/backends/redis/index.js";
import { Election } from "../../src/election/election.js";
import { conformanceSuite } from "../../src/testing/conformance/index.js";
import { hasRedis, RedisServer } from "../support/redis-server.js";
import { until } from "../support/until.js";
import { wishesOnly, without } from "../support/wishes.js";

describe.skipIf(!hasRedis())("layout redlock", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterEach(async () => void (await server.cli("FLUSHALL")));
  afterAll(() => server?.stop());

  async function candidate(name: string, ttlMs = 2_000, query = ""): Promise<Election> {
    const backend = await openRedis(`${server.url}?layout=redlock${query}`);
    const election = new Election({ name, backend, ttlMs, allowUnfenced: true, closeBackend: true });
    onTestFinished(() => election.close());
    return election;
  }

  function redlock(): Redlock {
    const client = new Redis({ port: server.port });
    onTestFinished(() => client.disconnect());
    return new Redlock([client], { retryCount: 0 });
  }

  // The rest of the suite asks for tokens that a lock which is gone cannot remember.
  conformanceSuite({
    runner: wishesOnly({ describe, test, skip: test.skip }),
    backend: () => openRedis(`${server.url}?layout=redlock`),
    skips: without(["heir"], "a lock that is gone has no place for an heir"),
  });

  it("is refused unless a life without tokens is accepted", async () => {
    await using backend = await openRedis(`${server.url}?layout=redlock`);
    expect(backend.guarantees.token).toBe("unfenced");
    expect(() => new Election({ name: "jobs", backend })).toThrow(/allowUnfenced/);
  });

  it("redlock is kept out while we lead, and gets the lock when we resign", async () => {
    const election = await candidate("jobs");
    const term = await election.campaign();
    const lock = redlock();
    await expect(lock.acquire(["jobs"], 1_000)).rejects.toThrow(/quorum|resource/);
    // Longer than a ttl: renewals count for it too.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(term.held).toBe(true);
    await expect(lock.acquire(["jobs"], 1_000)).rejects.toThrow(/quorum|resource/);
    await term.resign();
    await (await lock.acquire(["jobs"], 1_000)).release();
  });

  it("we are kept out while redlock holds it, and lead when it is released or runs out", async () => {
    const lock = redlock();
    const held = await lock.acquire(["jobs"], 60_000);
    const election = await candidate("jobs");
    expect(await election.tryCampaign()).toBeNull();
    const next = election.campaign();
    await held.release();
    const term = await next;
    await term.resign();
    await lock.acquire(["jobs"], 700);
    expect((await election.campaign()).held).toBe(true);
  });

  it("a handover among our own is by message, and tokens rise", async () => {
    const [first, second] = await Promise.all([candidate("jobs", 20_000), candidate("jobs", 20_000)]);
    const term = await first.campaign();
    const next = second.campaign();
    await until(async () => (await server.cli("PUBSUB", "CHANNELS")) !== "");
    await term.resign();
    expect((await next).token).toBeGreaterThan(term.token);
  });

  it("ShedLock's keys: job-lock:<environment>:<name>", async () => {
    await server.cli(
      "SET",
      "job-lock:default:report",
      "ADDED:2026-11-18T08:00:00Z@host:uuid",
      "NX",
      "PX",
      "60000",
    );
    const election = await candidate("report", 2_000, "&prefix=job-lock:default:");
    expect(await election.tryCampaign()).toBeNull();
    expect((await election.leader())?.candidate).toBe("(unreadable)");
    await server.cli("DEL", "job-lock:default:report");
    const term = await election.campaign();
    expect(await server.cli("SET", "job-lock:default:report", "ADDED:…", "NX", "PX", "60000")).toBe("");
    // ShedLock's default unlock is a bare DEL: it can end our lease, and we notice at the next renewal.
    await server.cli("DEL", "job-lock:default:report");
    await until(() => !term.held);
  });
});
