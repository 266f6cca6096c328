/**
 * The double dialer. Five instances of one program shall call a list of
 * customers at 9:00: each customer once. The leader dies, or freezes, at the
 * worst moments; the exchange's log shows what became of it.
 */
import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { dayOf } from "./calendar.js";
import { Exchange } from "./exchange.js";
import type { Ring } from "./exchange.js";

const CUSTOMERS = ["Ada", "Bela", "Carl", "Dora", "Egon"];
const INSTANCES = 5;

// Without Conclave: every instance has the list and a clock, and none knows of the others.
const rung = Array.from({ length: INSTANCES }, () => CUSTOMERS).flat();
const each = CUSTOMERS.map((customer) => rung.filter((name) => name === customer).length);
console.log(`without Conclave: ${CUSTOMERS.map((customer, n) => `${customer} ${each[n]}x`).join(", ")}`);

const folder = await mkdtemp(join(tmpdir(), "conclave-dialer-"));
const exchange = new Exchange();
const url = await exchange.open();
let finished: (() => void) | undefined;

function launch(): Promise<ChildProcess> {
  const args = [pathToFileURL(folder).href, url, CUSTOMERS.join(",")];
  const child = fork(fileURLToPath(new URL("instance.js", import.meta.url)), args);
  return new Promise((resolve) => {
    child.on("message", (message: { ready?: boolean }) => {
      if (message.ready === true) resolve(child);
      else finished?.();
    });
  });
}

const instances = await Promise.all(Array.from({ length: INSTANCES }, launch));
/** The story begins when one of them has had time to be elected. */
const start = Date.now() + 2_500;
for (const child of instances) child.send(start);
const instance = (pid: number): ChildProcess => instances.find((child) => child.pid === pid)!;
const connected = (ring: Ring): number =>
  exchange.log.filter(({ list, outcome }) => list === ring.list && outcome === "connected").length;

/** What happens on which day, right after a call was put through and before the dialer hears of it. */
const incidents: Record<number, { at: number; text: string; strike: (pid: number) => void }> = {
  1: { at: 3, text: "killed during the third call", strike: (pid) => instance(pid).kill("SIGKILL") },
  2: {
    at: 5,
    text: "killed after the last call, before it could write it down",
    strike: (pid) => instance(pid).kill("SIGKILL"),
  },
  3: { at: 2, text: "frozen after the second call, and woken when another had taken over", strike: freeze },
};

function freeze(pid: number): void {
  const child = instance(pid);
  child.kill("SIGSTOP");
  finished = () => child.kill("SIGCONT");
}

const ended = new Promise<void>((resolve) => {
  exchange.incident = (ring) => {
    const day = dayOf(ring.list, start);
    const incident = incidents[day];
    if (ring.outcome === "connected" && connected(ring) === incident?.at) {
      incident.strike(ring.pid);
      incident.at = -1;
    }
    // The last act of the story: the frozen leader wakes up and dials on.
    if (day === 3 && ring.outcome === "stale") resolve();
  };
});
await ended;

for (const day of [1, 2, 3]) {
  const calls = exchange.log.filter(({ list }) => dayOf(list, start) === day);
  const count = (outcome: Ring["outcome"]): number => calls.filter((ring) => ring.outcome === outcome).length;
  const called = CUSTOMERS.map(
    (customer) => calls.filter((ring) => ring.customer === customer && ring.outcome === "connected").length,
  );
  console.log(`day ${day}, 9:00, leader ${incidents[day]!.text}:`);
  console.log(
    `  called once ${called.filter((n) => n === 1).length}, twice ${called.filter((n) => n > 1).length}, missed ${called.filter((n) => n === 0).length}; ` +
      `refused: ${count("repeat")} repeats, ${count("stale")} of a leader of the past`,
  );
}

for (const child of instances) child.kill("SIGKILL");
await exchange.close();
await rm(folder, { recursive: true, force: true, maxRetries: 5 });
