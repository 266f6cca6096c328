/** The commands of operators on every store that keeps something on a server, and beside leaders of other languages. */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { ChildProcess } from "node:child_process";
import { describe, expect, it, onTestFinished } from "vitest";
import { inProcess, scratch } from "../cli/process.js";
import { ApiClient } from "../../src/backends/kubernetes/http.js";
import { kubeconfigAccess } from "../../src/backends/kubernetes/kubeconfig.js";
import { Leases } from "../../src/backends/kubernetes/leases.js";
import { systemClock } from "../../src/kit/clock.js";
import { withServer } from "../kubernetes/support/with-server.js";
import { BullyPeers } from "../support/bully-peers.js";
import { ConsulServer, hasConsul } from "../support/consul-server.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { hasPostgres, PostgresServer } from "../support/postgres-server.js";
import { KEY, RaftCluster } from "../support/raft-cluster.js";
import { hasRedis, RedisServer } from "../support/redis-server.js";
import { hasZooKeeper } from "../support/zookeeper-command.js";
import { hasPeer, Peer } from "../support/zookeeper-peers.js";
import { ZooKeeperServer } from "../support/zookeeper-server.js";
import { operate, operateForeign, run } from "./scenario.js";
import type { ForeignLeader } from "./scenario.js";
import { until } from "../support/until.js";

const LIMIT = { timeout: 120_000 };

/** A program that leads from the moment that it prints something. */
async function program(child: ChildProcess, candidate: ForeignLeader["candidate"]): Promise<ForeignLeader> {
  const gone = once(child, "exit");
  const stop = async (): Promise<void> => {
    child.kill("SIGKILL");
    await gone;
  };
  await Promise.race([once(createInterface({ input: child.stdout! }), "line"), gone]);
  return { candidate, stop };
}

describe.skipIf(!hasEtcd())("etcd", LIMIT, () => {
  it("list, resign, pause, history and forget; and etcdctl elect leads", async () => {
    const server = await EtcdServer.start();
    onTestFinished(() => server.stop());
    const url = `etcd://${server.endpoints.join(",")}`;
    await operate(url, "mailer", "removed");
    await operateForeign(url, "theirs", await program(server.etcdctlProcess("elect", "theirs", "x"), /./));
  });
});

describe.skipIf(!hasConsul())("Consul", LIMIT, () => {
  it("list, resign, pause, history and forget; and consul lock leads", async () => {
    const server = await ConsulServer.start();
    onTestFinished(() => server.stop());
    const url = `consul://${server.address.replace("http://", "")}`;
    await operate(url, "mailer", "removed");
    await operateForeign(
      url,
      "theirs",
      await program(server.command("lock", "theirs", "echo held; exec sleep 120"), /./),
    );
  });
});

describe.skipIf(!hasZooKeeper())("ZooKeeper", LIMIT, () => {
  it("list, resign, pause, history and forget; and kazoo leads", async ({ skip }) => {
    const server = await ZooKeeperServer.start();
    onTestFinished(() => server.stop());
    const url = `zookeeper://${server.hosts.join(",")}`;
    await operate(url, "mailer", "removed");
    skip(!hasPeer("kazoo"), "kazoo is not installed");
    const peer = new Peer("kazoo", {
      hosts: server.hosts.join(","),
      path: "/theirs",
      id: "theirs-1",
      classes: undefined,
    });
    await peer.ready();
    peer.stand();
    await until(() => peer.leading, 30_000);
    await operateForeign(`${url}?layout=kazoo`, "theirs", { candidate: "theirs-1", stop: () => peer.kill() });
  });
});

describe.skipIf(!hasPostgres())("PostgreSQL", LIMIT, () => {
  it("list, resign, pause, history and forget", async () => {
    const server = await PostgresServer.start();
    onTestFinished(() => server.stop());
    await operate(server.url(), "mailer", "removed");
  });
});

describe.skipIf(!hasRedis())("Redis", LIMIT, () => {
  it("list, resign, pause, history and forget", async () => {
    const server = await RedisServer.start();
    onTestFinished(() => server.stop());
    await operate(server.url, "mailer", "removed");
  });
});

describe("Raft peers", LIMIT, () => {
  it("list, resign, pause, history and forget: what tokens are made of is kept", async () => {
    const cluster = await RaftCluster.start();
    onTestFinished(() => cluster.stop());
    const file = join(scratch(), "key");
    writeFileSync(file, KEY, { mode: 0o600 });
    await operate(`raft://${cluster.list}?key-file=${encodeURIComponent(file)}`, "mailer", "kept");
  });
});

describe("Bully peers", LIMIT, () => {
  it("keep no records: each command says so, and what to do instead", async () => {
    const url = "bully://n1@127.0.0.1:1,n2@127.0.0.1:2?unsafe=true&insecure=true";
    for (const command of ["resign", "pause", "unpause", "history"]) {
      const { code, said } = await run(url, command, "mailer");
      expect([code, said]).toEqual([2, expect.stringMatching(/keeps no records, so there is no .*: \w+/)]);
    }
    void [BullyPeers, inProcess];
  });
});

withServer("Kubernetes", (server) => {
  it("list, resign, pause, history and forget; and a Lease as client-go writes it leads", LIMIT, async () => {
    const url = new URL("kubernetes:///default");
    url.searchParams.set("kubeconfig", server().admin);
    await operate(url.href, "mailer", "removed");
    const access = await kubeconfigAccess({ path: server().admin });
    const client = new ApiClient(access, systemClock);
    const leases = new Leases(client, "default");
    const now = `${new Date().toISOString().slice(0, -1)}000Z`;
    const spec = {
      holderIdentity: "go-1",
      leaseDurationSeconds: 60,
      acquireTime: now,
      renewTime: now,
      leaseTransitions: 3,
    };
    const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "theirs" }, spec };
    const { signal } = new AbortController();
    await leases.create("theirs", lease, { signal });
    const stop = async (): Promise<void> => client.close();
    await operateForeign(url.href, "theirs", { candidate: "go-1", stop });
  });

  it("who may not delete Leases is told so, and nothing is removed", LIMIT, async () => {
    const url = new URL("kubernetes:///default");
    url.searchParams.set("kubeconfig", server().elector);
    await run(url.href, "pause", "kept");
    await run(url.href, "unpause", "kept");
    const { code, said } = await run(url.href, "forget", "kept");
    expect([code, said]).toEqual([3, expect.stringContaining("delete")]);
  });
});
