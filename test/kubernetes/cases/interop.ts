/**
 * One election, two implementations: ours and client-go's hand leadership back
 * and forth, by release and by death. CONCLAVE_LONG=1 or ROUNDS=n for more.
 */
import { afterEach, expect, it } from "vitest";
import { kubernetesBackend } from "../../../src/backends/kubernetes/index.js";
import { Election } from "../../../src/election/election.js";
import { getLease } from "../support/api.js";
import { longestOverlap, Peer } from "../support/peers.js";
import type { Server } from "../support/server.js";

const TIMING = { ttlMs: 2000, renewDeadlineMs: 1300, retryMs: 300 };
const LONG = process.env["CONCLAVE_LONG"] === "1";
const HANDOVERS = Number(process.env["ROUNDS"] ?? (LONG ? 60 : 4));
/** A lease, the longest pause between two looks of client-go, and what a busy machine adds. */
const LIMIT_MS = 10_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const peers: Peer[] = [];

export function interopCases(server: () => Server): void {
  afterEach(async () => {
    await Promise.all(peers.splice(0).map((peer) => peer.end()));
  });

  it(
    `change leaders ${HANDOVERS} times, graceful and killed, never two at once`,
    { timeout: HANDOVERS * 15_000 },
    async ({ skip }) => {
      if (server().candidate === undefined) return skip("no client-go-candidate (CLIENT_GO_CANDIDATE)");
      const name = `interop-${process.pid}`;
      const start = (index: number): Peer => {
        const peer =
          index % 2 === 0
            ? Peer.conclave(server(), name, `ours-${index}`, TIMING)
            : Peer.clientGo(server(), name, `go-${index}`, TIMING);
        peers.push(peer);
        return peer;
      };
      let leader = start(0);
      await leader.next("started_leading", 0, LIMIT_MS);
      let token = 0n;
      const took: Record<string, number[]> = {};
      for (let index = 1; index <= HANDOVERS; index++) {
        const next = start(index);
        await next.next("starting", 0, LIMIT_MS);
        await pause(700); // it has looked at the Lease at least once
        const graceful = index % 4 < 2;
        const at = leader.signal(graceful ? "SIGTERM" : "SIGKILL");
        const started = await next.next("started_leading", at, LIMIT_MS);
        (took[`${leader.kind} ${graceful ? "released" : "killed"}`] ??= []).push(started.at - at);
        const lease = await getLease(server().admin, name);
        expect(lease.spec.leaseTransitions).toBe(index);
        expect(lease.spec.leaseDurationSeconds).toBe(2);
        const published = lease.metadata.annotations?.["conclave/term"];
        if (next.kind === "conclave") {
          const mine = BigInt(started.token ?? 0);
          expect(mine > token, `token ${mine} after ${token}`).toBe(true);
          token = mine;
        } else if (!graceful) {
          // client-go keeps what we wrote beside it; it speaks of the last leader, and says so.
          expect(JSON.parse(published).holder).toMatch(/^ours-/);
          expect(JSON.parse(published).holder).not.toBe(lease.spec.holderIdentity);
        }
        leader = next;
      }
      leader.signal("SIGTERM");
      await leader.exited;
      const overlap = longestOverlap(peers, true);
      // client-go gives the Lease back before it calls OnStoppedLeading: what its callback adds is its own.
      const late = longestOverlap(peers);
      const figures = Object.entries(took).map(
        ([what, ms]) =>
          `${what}: ${ms
            .map(Math.round)
            .toSorted((a, b) => a - b)
            .join(", ")} ms`,
      );
      console.log(
        `${HANDOVERS} handovers, longest overlap ${overlap.ms.toFixed(1)} ms ${overlap.who}` +
          ` (${late.ms.toFixed(1)} ms by when client-go calls OnStoppedLeading)\n${figures.join("\n")}`,
      );
      expect(overlap).toEqual({ ms: 0, who: "" });
      expect(late.ms).toBeLessThan(1000);
    },
  );

  it("an observer of ours sees a leader that client-go made, with a token that stays", async ({
    skip,
    onTestFinished,
  }) => {
    if (server().candidate === undefined) return skip("no client-go-candidate (CLIENT_GO_CANDIDATE)");
    const name = `observed-${process.pid}`;
    const go = Peer.clientGo(server(), name, "go", TIMING);
    peers.push(go);
    await go.next("started_leading", 0, LIMIT_MS);
    const election = new Election({
      name,
      backend: await kubernetesBackend({ kubeconfig: server().elector }),
      ...TIMING,
      renewMs: 300,
      closeBackend: true,
    });
    onTestFinished(() => election.close());
    const first = await election.leader();
    expect(first).toMatchObject({ candidate: "go", value: "" });
    await pause(1000);
    expect(await election.leader()).toEqual(first);
    expect(await election.tryCampaign()).toBeNull();
    const term = election.campaign();
    go.signal("SIGTERM");
    expect((await term).token > (first?.token ?? 0n)).toBe(true);
  });
}
