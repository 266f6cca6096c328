/**
 * Consul: handover and failover beside `consul lock`, many elections on one session, idle load. Servers are started
 * here, on this machine, so all figures are for a loopback network. BENCH_PART=handover runs one part.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setMaxListeners } from "node:events";
import { createInterface } from "node:readline";
import { consulBackend } from "../../src/backends/consul/index.js";
import { Election } from "../../src/election/election.js";
import { consulCommand } from "../../test/support/consul-command.js";
import { ConsulServer, hasConsul } from "../../test/support/consul-server.js";
import { until } from "../../test/support/until.js";
import { type Row, show, summarize } from "../measure.js";

const HANDOVERS = 100;
const REST_MS = 150;
const MANY = 1_000;
const FOLLOWERS = 20;
const TTL_MS = 10_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function election(server: ConsulServer, name: string): Election {
  const backend = consulBackend({ address: server.address, prefix: "bench", env: {} });
  return new Election({ name, backend, ttlMs: TTL_MS, closeBackend: true });
}

/** `consul lock`: a line when its command runs. */
function lock(
  server: ConsulServer,
  name: string,
): { held: Promise<unknown>; end(how: NodeJS.Signals): Promise<void> } {
  const child = spawn(consulCommand(), ["lock", `bench/${name}`, "echo held; exec sleep 600"], {
    env: { PATH: process.env["PATH"], CONSUL_HTTP_ADDR: server.address },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const gone = once(child, "exit");
  return {
    held: once(createInterface({ input: child.stdout }), "line"),
    end: async (how) => {
      child.kill(how);
      await gone;
    },
  };
}

/** From the call of resign() to the next term; from SIGTERM to the next command's line, less what ending takes both. */
async function* handover(server: ConsulServer): AsyncGenerator<Row> {
  const [a, b] = [election(server, "handover"), election(server, "handover")];
  const ours: number[] = [];
  const theirs: number[] = [];
  let term = await a.campaign();
  for (let i = 0; i < HANDOVERS; i++) {
    const next = (i % 2 === 0 ? b : a).campaign();
    await pause(REST_MS);
    const started = performance.now();
    const resigned = term.resign();
    term = await next;
    ours.push(performance.now() - started);
    await resigned;
  }
  let holder = lock(server, "peer");
  await holder.held;
  for (let i = 0; i < HANDOVERS / 4; i++) {
    const next = lock(server, "peer");
    await pause(2 * REST_MS);
    const started = performance.now();
    void holder.end("SIGTERM");
    await next.held;
    theirs.push(performance.now() - started);
    holder = next;
  }
  await holder.end("SIGKILL");
  await Promise.all([a.close(), b.close()]);
  yield {
    what: "graceful handover, resign() to the next term",
    result: show(summarize(ours)),
    beside: `consul lock, SIGTERM to the next command's output: ${show(summarize(theirs))}`,
  };
}

async function* crash(server: ConsulServer): AsyncGenerator<Row> {
  const oursOnce = async (): Promise<number> => {
    let dead = false;
    const backend = consulBackend({
      ...{ prefix: "bench", env: {} },
      send: async ({ method, path, headers, body }, signal) => {
        if (dead) throw new Error("dead");
        const init = { method, headers, signal, ...(body !== undefined && { body }) };
        const response = await fetch(`http://${server.address}${path}`, init);
        const text = await response.text();
        return { status: response.status, headers: Object.fromEntries(response.headers), text };
      },
    });
    const first = new Election({ name: "crash", backend, ttlMs: TTL_MS, closeBackend: true });
    await first.campaign();
    const second = election(server, "crash");
    const campaign = second.campaign();
    await pause(1_000);
    dead = true;
    const started = performance.now();
    await campaign;
    const took = performance.now() - started;
    await Promise.all([first.close(), second.close()]);
    return took;
  };
  const theirsOnce = async (): Promise<number> => {
    const first = lock(server, "crash-peer");
    await first.held;
    const second = lock(server, "crash-peer");
    await pause(1_000);
    await first.end("SIGKILL");
    const started = performance.now();
    await second.held;
    const took = performance.now() - started;
    await second.end("SIGKILL");
    return took;
  };
  const [ours, theirs] = await Promise.all([oursOnce(), theirsOnce()]);
  yield {
    what: "failover after a crash, ttl 10 s",
    result: `${(ours / 1000).toFixed(1)} s`,
    beside: `consul lock (its ttl is 15 s): ${(theirs / 1000).toFixed(1)} s`,
  };
}

async function* many(server: ConsulServer): AsyncGenerator<Row> {
  const backend = consulBackend({ address: server.address, prefix: "many", env: {} });
  const elections = Array.from(
    { length: MANY },
    (_, i) => new Election({ name: `e${i}`, backend, ttlMs: TTL_MS }),
  );
  const started = performance.now();
  const terms = await Promise.all(elections.map((each) => each.campaign()));
  const took = performance.now() - started;
  await pause(2 * TTL_MS);
  const kept = terms.filter(({ held }) => held).length;
  yield {
    what: `${MANY} elections on one session: all led`,
    result: `${(took / 1000).toFixed(1)} s, ${kept} kept`,
  };
  await Promise.all(elections.map((each) => each.close()));
  await backend[Symbol.asyncDispose]();
}

/** HTTP requests, by the agent's own count. */
async function requests(server: ConsulServer): Promise<number> {
  const metrics = (await server.api("GET", "/v1/agent/metrics")) as {
    Samples: { Name: string; Count: number }[];
  };
  return metrics.Samples.filter(({ Name }) => Name.startsWith("consul.http.")).reduce(
    (sum, { Count }) => sum + Count,
    0,
  );
}

async function* idle(server: ConsulServer): AsyncGenerator<Row> {
  const elections = Array.from({ length: 1 + FOLLOWERS }, () => election(server, "idle"));
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const runs = elections.map((each) =>
    each.run((term) => new Promise((resolve) => term.signal.addEventListener("abort", () => resolve())), {
      signal: stop.signal,
    }),
  );
  await until(() => elections.some(({ leading }) => leading));
  await pause(TTL_MS);
  // The agent counts in intervals of ten seconds: the mean of some.
  const samples: number[] = [];
  for (let i = 0; i < 3; i++) {
    await pause(TTL_MS);
    samples.push((await requests(server)) / 10);
  }
  yield {
    what: `1 leader and ${FOLLOWERS} followers in ${elections.length} backends, ttl 10 s, idle`,
    result: `about ${(samples.reduce((sum, each) => sum + each, 0) / samples.length).toFixed(1)} requests/s`,
  };
  stop.abort();
  await Promise.all(runs);
  await Promise.all(elections.map((each) => each.close()));
}

export default async function* bench(): AsyncGenerator<Row> {
  if (!hasConsul()) {
    yield { what: "skipped", result: "there is no Consul (CONSUL_BIN, or consul on the PATH)" };
    return;
  }
  const wanted = process.env["BENCH_PART"];
  const parts = [handover, crash, many, idle];
  if (wanted !== undefined && !parts.some(({ name }) => name === wanted))
    throw new Error(
      `no part ${wanted} of this bench: BENCH_PART is one of ${parts.map(({ name }) => name).join(", ")}`,
    );
  for (const part of parts) {
    if (wanted !== undefined && part.name !== wanted) continue;
    const server = await ConsulServer.start({ ttlMin: 10 });
    try {
      yield* part(server);
    } finally {
      await server.stop();
    }
  }
}
