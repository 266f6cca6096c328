/** What a user can get wrong: one clear error each. On a real server. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { BackendWithRecords } from "../../src/backend.js";
import { Election, isConclaveError } from "../../src/index.js";
import { ZooKeeperError } from "../../src/backends/zookeeper/client/errors.js";
import {
  openZooKeeper,
  zookeeperBackend,
  type ZooKeeperOptions,
} from "../../src/backends/zookeeper/index.js";
import { rawClient } from "../support/zookeeper-raw.js";
import { hasZooKeeper, ZooKeeperServer } from "../support/zookeeper-server.js";

const never = new AbortController().signal;
const limits = { signal: never, limitMs: 5_000 };

describe("ZooKeeper URLs and options", () => {
  it.each([
    ["zookeeper:/h", /not a ZooKeeper URL/],
    ["zookeeper://h/x?layout=queue", /layout is "queue"; it must be "curator-latch"/],
    ["zookeeper://h/x?acl=none", /acl is "none"/],
    ["zookeeper://h/x?nonsense=1", /no parameter "nonsense"/],
    ["zookeeper://h/x?tick=2", /write it as 2s/],
    ["zookeeper://h/x?layout=", /is empty/],
    ["zookeeper://u:p/w@h/x", /write \/ as %2F/],
    ["zookeeper://h:99999", /port 99999.*out of range/],
    ["zookeeper://h/a/../b", /"\." or "\.\."/],
    ["zookeeper://u@h", /must be user:password/],
    ["zookeeper://h?acl=creator", /needs credentials/],
    ["zookeeper://h?cert=x", /certificate was given without its key/],
    ["zookeeper://%zz", /broken %-sequence/],
  ])("%s is refused", (url, message) => {
    expect(() => openZooKeeper(url, { env: {} })).toThrow(message);
    expect(() => openZooKeeper(url, { env: {} })).toThrow(expect.objectContaining({ code: "invalid" }));
  });

  it.each(["zookeeper://user:geheim/x@h", "zookeeper://h,user:geheim", "zookeeper://user:geheim?x@h"])(
    "the refusal of %s shows no password",
    (url) => {
      let said = "";
      try {
        openZooKeeper(url, { env: {} });
      } catch (error) {
        said = String(error);
      }
      expect(said).not.toBe("");
      expect(said).not.toContain("geheim");
    },
  );

  it("takes several hosts, a chroot, credentials and the environment", async () => {
    for (const url of [
      "zookeeper://a:1,b:2,[::1]:3/some/root?layout=kazoo",
      "zookeepers://u:p%40w@h/x?acl=creator",
    ])
      await openZooKeeper(url, { env: {} })[Symbol.asyncDispose]();
    await openZooKeeper("zookeeper://", { env: { ZOOKEEPER_HOSTS: "x:1,y", ZOOKEEPER_AUTH: "u:p" } })[
      Symbol.asyncDispose
    ]();
    expect(() => zookeeperBackend({ env: { ZOOKEEPER_AUTH: "user" } })).toThrow(/user:password/);
    expect(() => zookeeperBackend({ env: {}, tickMs: 0 })).toThrow(/tickMs/);
  });
});

describe.skipIf(!hasZooKeeper())("what a server refuses", () => {
  let server: ZooKeeperServer;
  beforeAll(async () => {
    server = await ZooKeeperServer.start({ tls: "mutual" });
  }, 90_000);
  afterAll(() => server?.stop());

  const open = (options: ZooKeeperOptions = {}): BackendWithRecords => {
    const backend = zookeeperBackend({
      ...{ hosts: server.hosts, env: {}, tickMs: server.tickMs, warn: () => {} },
      ...options,
    });
    onTestFinished(() => backend[Symbol.asyncDispose]());
    return backend;
  };
  const campaign = (backend: BackendWithRecords, election: string): Promise<unknown> =>
    backend.campaign(
      { election, candidate: "c", value: "", ttlMs: 2_000, retryMs: 500, attemptMs: 2_000 },
      { wait: false, signal: never },
    );

  it("a chroot that does not exist: campaign, observe, list and records say so", async () => {
    const backend = open({ chroot: "/no/such" });
    const missing = { code: "invalid", message: expect.stringContaining('chroot "/no/such" does not exist') };
    await expect(campaign(backend, "x")).rejects.toMatchObject(missing);
    await expect(backend.list!({ signal: never })).rejects.toMatchObject(missing);
    await expect(backend.records.write("r", null, "text", { signal: never })).rejects.toMatchObject(missing);
    await expect(backend.records.read("r", { signal: never })).rejects.toMatchObject(missing);
    const leaders = backend.observe("x", { signal: never, pollMs: 1_000, attemptMs: 2_000 });
    const observed = leaders[Symbol.asyncIterator]();
    await expect(observed.next()).rejects.toMatchObject(missing);
  });

  it("a wrong digest password: forbidden, with what to check, and no password", async () => {
    const right = open({ auth: "app:right-password", acl: "creator" });
    expect(await campaign(right, "locked")).not.toBeNull();
    for (const auth of ["app:wrong-password", undefined]) {
      const failure = await campaign(open({ auth }), "locked").catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(ZooKeeperError);
      expect(failure).toMatchObject({ code: "forbidden", retriable: false });
      expect(String(failure)).toMatch(/check the digest user and password \(ZOOKEEPER_AUTH/);
      expect(String(failure)).not.toMatch(/wrong-password/);
    }
    expect(await campaign(open({ auth: "app:right-password" }), "locked")).toBeNull();
  });

  it("an ACL that lets us read but not create", async () => {
    const raw = await rawClient(server.hosts[0]!);
    await raw.restricted("/read-only", 1);
    await expect(campaign(open(), "read-only")).rejects.toMatchObject({
      code: "forbidden",
      retriable: false,
    });
    await raw.close();
  });

  /** The first handshake of a server that has just started can take longer than a connection is waited for. */
  async function handshaken<T>(campaigned: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await campaigned();
      } catch (error) {
        if (!isConclaveError(error) || error.code !== "timeout") throw error;
      }
    }
  }

  it("TLS: client certificates are shown, a server without one that is trusted is refused", async () => {
    const secure = `127.0.0.1:${server.securePorts[0]}`;
    expect(await handshaken(() => campaign(open({ hosts: secure, tls: server.tls }), "tls"))).not.toBeNull();
    await expect(campaign(open({ hosts: secure, tls: true }), "tls")).rejects.toMatchObject({
      ...{
        code: "forbidden",
        message: expect.stringMatching(/not trusted.*\?ca=file|no TLS connection.*\?cert=file/),
      },
    });
    await expect(campaign(open({ hosts: secure, tls: { ca: "/no/such.pem" } }), "tls")).rejects.toMatchObject(
      {
        code: "invalid",
      },
    );
    // Without TLS to its TLS port, and with TLS to the other: told, and not waited for.
    await expect(campaign(open({ hosts: secure }), "tls")).rejects.toThrow(
      /refused a session|cannot reach|not answered/,
    );
    await expect(campaign(open({ tls: server.tls }), "tls")).rejects.toThrow(/TLS|cannot reach|not answered/);
  }, 30_000);

  it("a server that is not there", async () => {
    await expect(campaign(open({ hosts: "127.0.0.1:1" }), "x")).rejects.toMatchObject({
      ...{
        code: "unavailable",
        message: expect.stringMatching(/cannot reach ZooKeeper at 127.0.0.1:1 \(ECONNREFUSED\)/),
      },
    });
  });

  it("ttls beyond the server's bounds: the granted one is used and said, once", async () => {
    const said: string[] = [];
    const backend = open({ tickMs: 100, warn: (message) => said.push(message) });
    const short = await new Election({ name: "short", backend, ttlMs: 600 }).campaign();
    expect(short.held).toBe(true);
    const again = await new Election({ name: "short-2", backend, ttlMs: 600 }).campaign();
    expect(again.held).toBe(true);
    expect(said).toEqual([expect.stringMatching(/a session of 1000 ms instead of 600 ms/)]);
    const hold = await backend.campaign(
      { election: "long", candidate: "c", value: "", ttlMs: 60_000, retryMs: 500, attemptMs: 2_000 },
      { wait: false, signal: never },
    );
    expect(hold?.ttlMs).toBe(10_000);
    expect(said).toEqual([expect.anything(), expect.stringMatching(/10000 ms instead of 60000 ms/)]);
    await Promise.all([short.resign(), again.resign(), hold?.release({ signal: never })]);
  });

  it("a child of another layout, or of no election: conflict, and which layout it is", async () => {
    const raw = await rawClient(server.hosts[0]!);
    await campaign(open({ layout: "kazoo" }), "mixed");
    await expect(campaign(open(), "mixed")).rejects.toMatchObject({
      ...{ code: "conflict", message: expect.stringMatching(/but of layout kazoo/) },
    });
    await raw.connection.create("/foreign", "", "persistent", limits);
    await raw.connection.create("/foreign/something", "", "persistent", limits);
    await expect(campaign(open(), "foreign")).rejects.toMatchObject({ code: "conflict" });
    await expect(campaign(open(), "foreign/something/deeper")).resolves.not.toBeNull();
    await raw.close();
  });

  it("sequence numbers near their end: refused, with what to do", async () => {
    const raw = await rawClient(server.hosts[0]!);
    await raw.connection.create("/worn", "", "persistent", limits);
    for (const name of ["2000000001", "-000000005", "-2147483648"]) {
      const path = `/worn/_c_${"a".repeat(32)}-latch-${name}`;
      await raw.connection.create(path, "", "persistent", limits);
      await expect(campaign(open(), "worn")).rejects.toThrow(/used up.*delete that node/s);
      await raw.connection.remove(path, limits);
    }
    await raw.close();
  });
});
