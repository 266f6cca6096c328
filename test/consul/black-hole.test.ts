/**
 * The leader's connection dies without a word. Ours stops before the next one leads. Long: thirty times, with
 * `consul lock` in the same trouble beside it, whose command goes on (how long is printed, not judged).
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { faultProxy } from "../../src/testing/conformance/index.js";
import { consulCommand } from "../support/consul-command.js";
import { consulElection } from "../support/consul-elections.js";
import { ConsulServer, hasConsul } from "../support/consul-server.js";
import { until } from "../support/until.js";

const LONG = process.env["CONCLAVE_LONG"] === "1";
const ROUNDS = LONG ? 30 : 2;
const AT_ONCE = LONG ? 10 : 2;

describe.skipIf(!hasConsul())("a black hole before the leader", () => {
  let server: ConsulServer;
  beforeAll(async () => {
    server = await ConsulServer.start();
  });
  afterAll(() => server.stop());

  it(
    "never two",
    async () => {
      const overlaps: number[] = [];
      for (let round = 0; round < ROUNDS; round += AT_ONCE) {
        const names = Array.from({ length: AT_ONCE }, (_, i) => `hole${round + i}`);
        const theirs = LONG ? names.map((name) => theirsOnce(server, name)) : [];
        await Promise.all(names.map((name) => oursOnce(server, name)));
        overlaps.push(...(await Promise.all(theirs)));
      }
      if (LONG)
        process.stderr.write(
          `consul lock: two at once for ${overlaps.map((ms) => Math.round(ms)).join(", ")} ms\n`,
        );
    },
    ROUNDS * 60_000,
  );
});

async function oursOnce(server: ConsulServer, name: string): Promise<void> {
  await using proxy = await faultProxy({ port: server.entry.ports.http });
  const behind = { address: `${proxy.host}:${proxy.port}` };
  await using first = consulElection(behind, name);
  await using second = consulElection(server, name);
  const old = await first.campaign();
  const campaign = second.campaign();
  await until(async () => (await second.leader())?.token === old.token);
  await proxy.blackHole();
  const next = await campaign;
  expect(old.held).toBe(false);
  expect(next.held).toBe(true);
  expect(next.token).toBeGreaterThan(old.token);
  await proxy.heal();
}

/** How long both commands ran. */
async function theirsOnce(server: ConsulServer, name: string): Promise<number> {
  await using proxy = await faultProxy({ port: server.entry.ports.http });
  const first = lock(`${proxy.host}:${proxy.port}`, name);
  await first.held;
  const second = lock(server.address, name);
  await proxy.blackHole();
  await second.held;
  const since = performance.now();
  const alive = first.child.exitCode === null && first.child.signalCode === null;
  if (alive) await Promise.race([first.gone, new Promise((resolve) => setTimeout(resolve, 60_000))]);
  const overlapMs = alive ? performance.now() - since : 0;
  for (const { child } of [first, second]) child.kill("SIGKILL");
  await Promise.all([first.gone, second.gone]);
  return overlapMs;
}

function lock(
  address: string,
  name: string,
): { child: ChildProcess; held: Promise<unknown>; gone: Promise<unknown> } {
  const child = spawn(consulCommand(), ["lock", `peers/${name}`, "echo held; exec sleep 120"], {
    env: { PATH: process.env["PATH"], CONSUL_HTTP_ADDR: address },
    stdio: ["ignore", "pipe", "ignore"],
  });
  return { child, held: once(createInterface({ input: child.stdout }), "line"), gone: once(child, "exit") };
}
