/**
 * In one election with Curator and kazoo: handovers each way, graceful and
 * killed. CONCLAVE_LONG=1 runs as many as the promise was made for.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ZooKeeperLayout, zookeeperBackend } from "../../src/backends/zookeeper/index.js";
import type { Backend } from "../../src/backend.js";
import { Election, type Term } from "../../src/index.js";
import { startCandidate } from "../support/children.js";
import { until } from "../support/until.js";
import { compileCurator, hasPeer, Peer, type PeerKind, removeCompiled } from "../support/zookeeper-peers.js";
import { hasZooKeeper, ZooKeeperServer } from "../support/zookeeper-server.js";

const LONG = process.env["CONCLAVE_LONG"] === "1";
const GRACEFUL = LONG ? 60 : 3;
const KILLED = LONG ? 60 : 1;
const TTL_MS = 2_000;

const peers: [PeerKind, ZooKeeperLayout][] = [
  ["latch", "curator-latch"],
  ["selector", "curator-lock"],
  ["kazoo", "kazoo"],
  // Differs from the selector in its own code alone.
  ...(LONG ? ([["mutex", "curator-lock"]] as [PeerKind, ZooKeeperLayout][]) : []),
];

describe.skipIf(!hasZooKeeper()).each(peers)("ZooKeeper: in one election with %s", (kind, layout) => {
  let server: ZooKeeperServer;
  let classes: string | undefined;
  let started = 0;
  const skipped = !hasPeer(kind);

  beforeAll(async () => {
    if (skipped) return;
    server = await ZooKeeperServer.start();
    if (kind !== "kazoo") classes = await compileCurator();
  }, 120_000);
  afterAll(async () => {
    await server?.stop();
    await removeCompiled(classes);
  });

  const open = (): Backend =>
    zookeeperBackend({ hosts: server.hosts, layout, tickMs: server.tickMs, env: {}, warn: () => {} });
  const startPeer = async (name: string): Promise<Peer> => {
    const peer = new Peer(kind, {
      ...{ hosts: server.hosts.join(","), path: `/app/${name}`, classes },
      id: `${kind}-${++started}`,
    });
    await peer.ready();
    return peer;
  };

  it.skipIf(skipped)(
    `${GRACEFUL} graceful handovers each way: never two, and each sees the other's id`,
    { timeout: 60_000 + GRACEFUL * 10_000 },
    async () => {
      const backend = open();
      const election = new Election({ name: "app/graceful", backend, ttlMs: TTL_MS });
      const peer = await startPeer("graceful");
      let term: Term | undefined;
      let overlaps = 0;
      peer.onLeading = () => (overlaps += term?.held === true ? 1 : 0);
      try {
        let campaign = election.campaign();
        for (let i = 0; i < GRACEFUL; i++) {
          term = await campaign;
          if (peer.leading) overlaps++;
          peer.stand();
          if (i === 0 && kind !== "mutex")
            expect(await peer.who()).toBe((await election.leader())?.candidate);
          // It has joined when the list shows it, behind us.
          await until(async () => (await peersIn()) === 2);
          await term.resign();
          await until(() => peer.leading, 20_000);
          if (kind !== "mutex") expect((await election.leader())?.candidate).toBe(peer.id);
          campaign = election.campaign();
          await until(async () => (await peersIn()) === 2);
          await peer.resign();
        }
        await campaign;
        expect(overlaps).toBe(0);
      } finally {
        await peer.kill();
        await election.close();
        await backend[Symbol.asyncDispose]();
      }

      async function peersIn(): Promise<number> {
        const text = (await server.members[0]!.ask("dump")) ?? "";
        return text.split("\n").filter((line) => line.includes("/app/graceful/")).length;
      }
    },
  );

  // Curator's LeaderLatch reacts to the deletion of the node before it alone, and does not watch it again after
  // another event: it would overlook our end if we wrote to our node.
  it.skipIf(skipped)(
    "one that waits behind us hears of our end also when we have published values",
    { timeout: 60_000 },
    async () => {
      const backend = open();
      const election = new Election({ name: "app/values", backend, ttlMs: TTL_MS });
      const peer = await startPeer("values");
      try {
        const term = await election.campaign();
        peer.stand();
        await until(async () => (await watchesOf("/app/values/")) > 0);
        await term.proclaim("one");
        await term.proclaim("two");
        expect(await election.leader()).toMatchObject({ token: term.token, value: "two" });
        await term.resign();
        await until(() => peer.leading, 20_000);
      } finally {
        await peer.kill();
        await election.close();
        await backend[Symbol.asyncDispose]();
      }

      /** How many watches there are on nodes below this one. */
      async function watchesOf(path: string): Promise<number> {
        const text = (await server.members[0]!.ask("wchp")) ?? "";
        return text.split("\n").filter((line) => line.startsWith(path)).length;
      }
    },
  );

  it.skipIf(skipped)(
    `${KILLED} killed each way: the other leads, and never two`,
    { timeout: 60_000 + KILLED * 40_000 },
    async () => {
      const backend = open();
      const election = new Election({ name: "app/killed", backend, ttlMs: TTL_MS });
      try {
        for (let i = 0; i < KILLED; i++) {
          const peer = await startPeer("killed");
          peer.stand();
          await until(() => peer.leading, 20_000);
          const campaign = election.campaign();
          await peer.kill();
          const term = await campaign;
          expect(term.held).toBe(true);
          expect(peer.leading).toBe(false);
          await term.resign();

          const url = `zookeeper://${server.hosts[0]}?layout=${layout}&tick=${server.tickMs}ms`;
          const child = startCandidate({ url, election: "app/killed", ttlMs: TTL_MS });
          // One read may fail on a busy machine; the next answers.
          await until(async () => (await election.leader().catch(() => null)) !== null, 30_000);
          const next = await startPeer("killed");
          next.stand();
          expect(next.leading).toBe(false);
          const gone = new Promise((resolve) => child.once("exit", resolve));
          child.kill("SIGKILL");
          await gone;
          await until(() => next.leading, 20_000);
          await next.kill();
          // Its session lasts a little longer; the next round waits for it as any candidate does.
        }
      } finally {
        await election.close();
        await backend[Symbol.asyncDispose]();
      }
    },
  );
});
