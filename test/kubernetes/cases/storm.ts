/** Someone edits the Lease all the time: labels, which are none of an election's business. */
import { expect, it } from "vitest";
import { kubernetesBackend } from "../../../src/backends/kubernetes/index.js";
import { Election } from "../../../src/election/election.js";
import { untilStopped } from "../support/overlap.js";
import { ApiProxy } from "../support/proxy.js";
import type { Server } from "../support/server.js";
import { labelStorm } from "../support/storm.js";

const EDITS_PER_SECOND = 55;
/** One way. With this on the way there and back, the next edit comes before an update that saw the last one arrives. */
const FAR_MS = 20;
const TIMING = { ttlMs: 15_000, renewDeadlineMs: 10_000, renewMs: 500, retryMs: 500 };

export function stormCases(server: () => Server): void {
  it("a label edited 55 times a second, on a server 40 ms away, does not end the leader's term", async ({
    onTestFinished,
  }) => {
    const name = `storm-${process.pid}`;
    const proxy = await ApiProxy.start(server().admin);
    onTestFinished(() => proxy.close());
    proxy.treat = () => ({ kind: "slow", ms: FAR_MS });
    const kubeconfig = proxy.kubeconfig(server().admin);
    const backend = await kubernetesBackend({ kubeconfig });
    const election = new Election({ name, backend, closeBackend: true, ...TIMING });
    onTestFinished(() => election.close());
    const ends: string[] = [];
    let renewed = 0;
    election.on("ended", ({ end }) => ends.push(end.detail));
    election.on("renewal", ({ ok }) => void (ok && renewed++));
    void election.run(untilStopped);
    await expect.poll(() => election.leading, { timeout: 20_000 }).toBe(true);
    const storm = await labelStorm(server().admin, name, EDITS_PER_SECOND);
    onTestFinished(() => storm.stop());
    await expect.poll(storm.edits, { timeout: 20_000 }).toBeGreaterThan(20);
    renewed = 0;
    const before = storm.edits();
    await expect.poll(() => renewed, { timeout: 40_000 }).toBeGreaterThanOrEqual(5);
    expect(storm.edits()).toBeGreaterThan(before);
    expect(ends).toEqual([]);
  });
}
