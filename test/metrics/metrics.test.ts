import { readFile } from "node:fs/promises";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { everyTimetable, schedule } from "../../src/cron/index.js";
import { deferred } from "../../src/kit/wait.js";
import { Election, memoryBackend } from "../../src/index.js";
import { ElectionMetrics, ScheduleMetrics } from "../../src/metrics/index.js";

interface Sample {
  readonly name: string;
  readonly labels: Record<string, string>;
  readonly value: number;
}

/** Reads the exposition format back; throws on a line that is not of it. */
function parse(text: string): Sample[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const match = /^([a-z_]+)(?:\{(.*)\})? ([0-9.e+-]+|NaN|\+Inf)$/.exec(line);
      if (match === null) throw new Error(`not a sample: ${line}`);
      const labels = [...(match[2] ?? "").matchAll(/([a-z]+)="((?:[^"\\]|\\.)*)"/g)].map(([, k, v]) => [
        k,
        v,
      ]);
      return {
        name: match[1]!,
        labels: Object.fromEntries(labels) as Record<string, string>,
        value: Number(match[3]),
      };
    });
}

const read = async (metrics: ElectionMetrics | ScheduleMetrics) => {
  const samples = parse(await metrics.registry.metrics());
  return (name: string, labels: Record<string, string> = {}) =>
    samples.find((s) => s.name === name && Object.entries(labels).every(([k, v]) => s.labels[k] === v))
      ?.value;
};

/** Events are delivered in a microtask. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("a transfer is counted by what was seen", async () => {
  const metrics = new ElectionMetrics();
  await using election = new Election({ name: "e", backend: memoryBackend(), ttlMs: 2000 });
  metrics.watch(election);
  const term = await election.campaign();
  expect(await term.transfer("nobody", { timeoutMs: 20 })).toBe("timeout");
  await settled();
  expect((await read(metrics))("conclave_transfers_total", { result: "timeout" })).toBe(1);
});

test("a term leaves its trace, and the text parses back", async () => {
  const metrics = new ElectionMetrics();
  await using election = new Election({ name: 'evil "name"\\', backend: memoryBackend(), ttlMs: 2000 });
  const off = metrics.watch(election);
  expect((await read(metrics))("conclave_leading", { backend: "memory" })).toBe(0);
  const term = await election.campaign();
  expect((await read(metrics))("conclave_leading")).toBe(1);
  await term.resign();
  await settled();
  const after = await read(metrics);
  expect(after("conclave_leading")).toBe(0);
  expect(after("conclave_terms_total", { reason: "resigned" })).toBe(1);
  expect(after("conclave_terms_total", { reason: "expired" })).toBe(0);
  expect(after("conclave_term_duration_seconds_count")).toBe(1);
  expect(after("conclave_campaign_wait_seconds_count")).toBe(1);
  off();
});

test("failing renewals are counted, and so is the time in jeopardy", async () => {
  const backend = memoryBackend();
  const broken = { on: false };
  const flaky = {
    ...backend,
    name: "flaky",
    guarantees: backend.guarantees,
    records: backend.records,
    observe: backend.observe.bind(backend),
    [Symbol.asyncDispose]: async () => {},
    campaign: async (...args: Parameters<typeof backend.campaign>) => {
      const hold = await backend.campaign(...args);
      if (hold === null) return null;
      return {
        token: hold.token,
        asked: hold.asked,
        ttlMs: hold.ttlMs,
        proclaim: hold.proclaim.bind(hold),
        release: hold.release.bind(hold),
        renew: (options: Parameters<typeof hold.renew>[0]) =>
          broken.on ? Promise.reject(new Error("store away")) : hold.renew(options),
      };
    },
  };
  const metrics = new ElectionMetrics({ registry: new Registry() });
  await using election = new Election({ name: "e", backend: flaky, ttlMs: 1000 });
  metrics.watch(election);
  await election.campaign();
  broken.on = true;
  await new Promise<void>((resolve) => void election.on("jeopardy", () => resolve()));
  broken.on = false;
  await new Promise<void>((resolve) => void election.on("safe", () => resolve()));
  await settled();
  const after = await read(metrics);
  expect(after("conclave_renewal_failures_total")).toBeGreaterThanOrEqual(1);
  expect(after("conclave_jeopardy_seconds_total")).toBeGreaterThan(0);
  expect(after("conclave_deadline_margin_seconds")).toBeGreaterThan(0);
  expect(after("conclave_renewal_duration_seconds_count")).toBeGreaterThanOrEqual(2);
});

test("alert rules name only metrics that exist, and missed runs are among them", async () => {
  const { registry } = new ElectionMetrics();
  void new ScheduleMetrics({ registry });
  const known = new Set((await registry.getMetricsAsJSON()).map(({ name }) => name));
  const rules = await readFile(
    new URL("../../deploy/prometheus/conclave.rules.yaml", import.meta.url),
    "utf8",
  );
  const expressions = rules.split("\n").filter((line) => line.trim().startsWith("expr:"));
  const named = expressions.flatMap((line) => line.match(/conclave_[a-z_]+/g) ?? []);
  expect(expressions.length).toBeGreaterThanOrEqual(5);
  expect(named.length).toBeGreaterThanOrEqual(expressions.length);
  for (const name of named) expect(known, name).toContain(name);
  for (const name of ["missed", "runs", "skipped"]) expect(named).toContain(`conclave_cron_${name}_total`);
});

test("two candidates of one election in one process: leading if either leads", async () => {
  const metrics = new ElectionMetrics();
  const backend = memoryBackend();
  await using leader = new Election({ name: "e", backend, ttlMs: 2000 });
  await using follower = new Election({ name: "e", backend, ttlMs: 2000 });
  metrics.watch(leader);
  const unwatch = metrics.watch(follower);
  await leader.campaign();
  expect((await read(metrics))("conclave_leading")).toBe(1);
  unwatch();
  expect((await read(metrics))("conclave_leading")).toBe(1);
});

test("a schedule's runs are counted by outcome, its misses too", async () => {
  // Both may share a registry.
  const { registry } = new ElectionMetrics();
  const metrics = new ScheduleMetrics({ registry });
  let runs = 0;
  const third = deferred<void>();
  const replica = await schedule({
    name: "nightly",
    cron: everyTimetable(50),
    backend: memoryBackend(),
    ttlMs: 1000,
    job: async ({ signal }) => {
      const run = ++runs;
      if (run === 1) return;
      if (run === 2) throw new Error("no paper");
      third.resolve();
      // The third is cut short by the end of the term: at most once, so it is missed.
      await new Promise<void>((_, reject) => signal.addEventListener("abort", () => reject(new Error())));
    },
  });
  const unwatch = metrics.watch(replica);
  expect((await read(metrics))("conclave_cron_missed_total")).toBe(0);
  await third.promise;
  await replica.close();
  await settled();
  const after = await read(metrics);
  const count = (outcome: string) =>
    after("conclave_cron_runs_total", { outcome, schedule: "nightly", backend: "memory" });
  expect([count("done"), count("failed"), count("timed-out"), count("interrupted")]).toEqual([1, 1, 0, 1]);
  expect(after("conclave_cron_missed_total")).toBe(1);
  expect(after("conclave_cron_retries_total")).toBe(0);
  unwatch();
});
