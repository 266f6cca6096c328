/**
 * What goes wrong with API servers, and with people. Lease 3 s, renew deadline
 * 2 s, retry 500 ms. Each case asks three things: did two lead at once, did
 * someone lead again in time, and was what went wrong visible.
 */
import { afterAll, describe, it } from "vitest";
import type { TestContext } from "vitest";
import { kubernetesBackend } from "../../src/backends/kubernetes/index.js";
import { Election } from "../../src/election/election.js";
import { isConclaveError } from "../../src/kit/errors.js";
import { apiCall, LEASES, patchLease } from "./support/api.js";
import { leaderOf, OverlapWatch, untilStopped } from "./support/overlap.js";
import { ApiServerProcess } from "./support/processes.js";
import type { Treatment } from "./support/proxy.js";
import { ApiProxy } from "./support/proxy.js";
import { withServer } from "./support/with-server.js";

const TIMING = { ttlMs: 3000, renewDeadlineMs: 2000, renewMs: 500, retryMs: 500 };
/** Where leadership must be kept, however busy the machine is. */
const PATIENT = { ttlMs: 15_000, renewDeadlineMs: 10_000, renewMs: 500, retryMs: 500 };
/** A lease, the longest pause between two looks, and what a busy machine adds. */
const BACK_MS = 3000 + 2.2 * 500 + 6000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

let sequence = 0;

withServer("faults", (server) => {
  let api: ApiServerProcess | undefined;
  afterAll(() => api?.end());

  interface Scene {
    readonly name: string;
    readonly a: Election;
    readonly b: Election;
    readonly watch: OverlapWatch;
  }

  async function candidate(
    { onTestFinished }: TestContext,
    name: string,
    kubeconfig: string,
    timing = TIMING,
  ): Promise<Election> {
    const backend = await kubernetesBackend({ kubeconfig });
    const election = new Election({ name, backend, ...timing, closeBackend: true });
    const stop = new AbortController();
    const running = election.run(untilStopped, { signal: stop.signal });
    onTestFinished(async () => {
      stop.abort();
      await running;
      await election.close();
    });
    return election;
  }

  async function proxied({ onTestFinished }: TestContext): Promise<ApiProxy> {
    const proxy = await ApiProxy.start(server().elector);
    onTestFinished(() => proxy.close());
    return proxy;
  }

  /** Two candidates, the first of which leads: the first by the proxy if there is one. */
  async function pair(test: TestContext, proxy?: ApiProxy, both = false, timing = TIMING): Promise<Scene> {
    const name = `fault-${process.pid}-${++sequence}`;
    const through = proxy?.kubeconfig(server().elector) ?? server().elector;
    const a = await candidate(test, name, through, timing);
    await leaderOf([a], 15_000);
    const b = await candidate(test, name, both ? through : server().elector, timing);
    await pause(700); // until b's watch is open
    const watch = new OverlapWatch([a, b]);
    test.onTestFinished(() => void watch.stop());
    return { name, a, b, watch };
  }

  // Side by side: most of each is waiting.
  describe.concurrent("one connection, one person", () => {
    it("a leader whose connection hangs stops at its deadline, and the other follows after the lease", async (test) => {
      const { expect } = test;
      const proxy = await proxied(test);
      const { a, b, watch } = await pair(test, proxy);
      const ended = new Promise<number>((resolve) => a.on("ended", () => resolve(performance.now())));
      const at = performance.now();
      proxy.freeze();
      expect((await ended) - at).toBeLessThan(4000);
      await leaderOf([b], BACK_MS);
      proxy.thaw();
      await pause(1000);
      expect(a.leading).toBe(false);
      expect(watch.stop().longestMs).toBe(0);
    });

    it("a Lease deleted by hand: the leader knows by the watch, the overlap is a moment", async (test) => {
      const { expect } = test;
      const { name, a, b, watch } = await pair(test, undefined, false, PATIENT);
      const ended = new Promise<number>((resolve) => a.on("ended", () => resolve(performance.now())));
      const at = performance.now();
      await apiCall(server().admin, "DELETE", `${LEASES}/${name}`);
      const knew = (await ended) - at;
      await leaderOf([a, b], BACK_MS);
      await pause(500);
      const { longestMs } = watch.stop();
      console.log(
        `Lease deleted: the leader knew after ${Math.round(knew)} ms; overlap ${Math.round(longestMs)} ms`,
      );
      expect(knew).toBeLessThan(5000);
      expect(longestMs).toBeLessThan(2000);
    });

    it("a holder cleared by hand: the same", async (test) => {
      const { expect } = test;
      const { name, a, b, watch } = await pair(test, undefined, false, PATIENT);
      const ended = new Promise<number>((resolve) => a.on("ended", () => resolve(performance.now())));
      const at = performance.now();
      await patchLease(server().admin, name, { spec: { holderIdentity: "" } });
      const knew = (await ended) - at;
      await leaderOf([a, b], BACK_MS);
      await pause(500);
      const { longestMs } = watch.stop();
      console.log(
        `holder cleared: the leader knew after ${Math.round(knew)} ms; overlap ${Math.round(longestMs)} ms`,
      );
      expect(knew).toBeLessThan(5000);
      expect(longestMs).toBeLessThan(2000);
    });

    it("every write refused (403) while reads work: said at once, over at the deadline, back when it is mended", async (test) => {
      const { expect } = test;
      const proxy = await proxied(test);
      const { a, b, watch } = await pair(test, proxy, true);
      const errors: unknown[] = [];
      a.on("jeopardy", ({ error }) => errors.push(error));
      b.on("error", ({ error }) => errors.push(error));
      const ended = new Promise<string>((resolve) => a.on("ended", ({ end }) => resolve(end.reason)));
      const refuse: Treatment = {
        kind: "refuse",
        status: 403,
        body: { kind: "Status", reason: "Forbidden", message: "no update" },
      };
      proxy.treat = ({ method }) => (method === "GET" ? undefined : refuse);
      const forbidden = (): unknown =>
        errors.find((error) => isConclaveError(error) && error.code === "forbidden");
      await expect.poll(forbidden, { timeout: 10_000 }).toBeDefined();
      const error = forbidden();
      expect(String(error)).toMatch(/Role with get, create, update and watch on leases/);
      expect(await ended).toBe("expired");
      proxy.treat = () => undefined;
      await leaderOf([a, b], BACK_MS);
      expect(watch.stop().longestMs).toBe(0);
    });

    it("429 with Retry-After is obeyed, and leadership kept", async (test) => {
      const { expect } = test;
      const proxy = await proxied(test);
      const { a, watch } = await pair(test, proxy, false, PATIENT);
      const token = a.term?.token;
      let refused = 0;
      let early = 0;
      let until = 0;
      let next = 0;
      proxy.treat = ({ method }) => {
        const now = performance.now();
        if (now < until) early++;
        if (method !== "PUT" || now < next) return undefined;
        refused++;
        until = now + 950;
        next = now + 2500;
        return { kind: "refuse", status: 429, headers: { "retry-after": "1" } };
      };
      await expect.poll(() => refused, { timeout: 15_000 }).toBe(2);
      await pause(1500);
      expect(early).toBe(0);
      expect(a.term?.token).toBe(token);
      expect(a.leading).toBe(true);
      expect(watch.stop().longestMs).toBe(0);
    });

    it("watches cut every second: the leader stays, and a release is still seen at once", async (test) => {
      const { expect } = test;
      const proxy = await proxied(test);
      const { a, b, watch } = await pair(test, proxy, true, PATIENT);
      const token = a.term?.token;
      let cut = 0;
      const timer = setInterval(() => (cut += proxy.cutWatches()), 1000);
      test.onTestFinished(() => clearInterval(timer));
      await pause(4500);
      expect(cut).toBeGreaterThan(3);
      expect(a.term?.token).toBe(token);
      const at = performance.now();
      void a.resign();
      await leaderOf([a, b], BACK_MS, a);
      console.log(`watches cut every second: handover ${Math.round(performance.now() - at)} ms`);
      expect(watch.stop().longestMs).toBe(0);
    });

    it("answers that get lost: what was written is found again, and nobody leads twice", async (test) => {
      const { expect } = test;
      const proxy = await proxied(test);
      const { a, b, watch } = await pair(test, proxy, true);
      let swallowed = 0;
      proxy.treat = ({ method }) =>
        method === "PUT" && swallowed++ % 2 === 0 ? { kind: "swallow" } : undefined;
      await pause(5000);
      proxy.treat = () => undefined;
      await leaderOf([a, b], BACK_MS);
      expect(swallowed).toBeGreaterThan(1);
      expect(watch.stop().longestMs).toBe(0);
    });

    it("somebody who edits a label twice a second does not keep a dead leader leading", async (test) => {
      const { expect } = test;
      const proxy = await proxied(test);
      const { name, b, watch } = await pair(test, proxy);
      proxy.freeze();
      const at = performance.now();
      let edits = 0;
      const timer = setInterval(
        () => void patchLease(server().admin, name, { metadata: { labels: { edit: String(edits++) } } }),
        500,
      );
      test.onTestFinished(() => clearInterval(timer));
      await leaderOf([b], BACK_MS);
      console.log(
        `a label edited twice a second: the next leader after ${Math.round(performance.now() - at)} ms`,
      );
      expect(edits).toBeGreaterThan(3);
      expect(watch.stop().longestMs).toBe(0);
    });
  });

  it("a hung API server that comes back costs no overlap, and somebody leads again", async (test) => {
    const { expect } = test;
    api ??= ApiServerProcess.of(server());
    if (api === undefined) return;
    const { a, b, watch } = await pair(test);
    api.freeze();
    await pause(5000);
    expect([a.leading, b.leading]).toEqual([false, false]);
    api.thaw();
    const at = performance.now();
    await leaderOf([a, b], BACK_MS);
    console.log(
      `API server hung for 5 s: somebody leads again ${Math.round(performance.now() - at)} ms after it came back`,
    );
    expect(watch.stop().longestMs).toBe(0);
  });

  it("an API server that is down for two leases: nobody leads meanwhile, somebody soon after", async (test) => {
    const { expect } = test;
    api ??= ApiServerProcess.of(server());
    if (api === undefined) return;
    const { a, b, watch } = await pair(test);
    await api.kill();
    await pause(6000);
    expect([a.leading, b.leading]).toEqual([false, false]);
    await api.start();
    const at = performance.now();
    await leaderOf([a, b], BACK_MS);
    console.log(
      `API server down for two leases: somebody leads again ${Math.round(performance.now() - at)} ms after it was ready`,
    );
    expect(watch.stop().longestMs).toBe(0);
  });
});
