/**
 * Opens and closes elections many times, in every state a candidate can be in,
 * and prints what is left afterwards beyond what was there before.
 */
import { once } from "node:events";
import { readdirSync, watch } from "node:fs";
import { tmpdir } from "node:os";
import { openElection } from "conclave";
import type { Backend, Election } from "conclave";

const CYCLES = 100;
const WARM_UP = 5;
const backend = process.argv[2];

interface Residue {
  readonly resources: Record<string, number>;
  readonly descriptors: number;
  readonly listeners: Record<string, number>;
}

function residue(): Residue {
  const resources: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
  const listeners: Record<string, number> = {};
  for (const event of process.eventNames()) listeners[String(event)] = process.listenerCount(event);
  return { resources, descriptors: descriptors(), listeners };
}

function descriptors(): number {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return 0; // no /proc: not counted
  }
}

async function lead(election: Election): Promise<void> {
  const term = await election.campaign();
  await term.proclaim("busy");
}

async function work(election: Election): Promise<void> {
  await new Promise<void>((resolve) => {
    void election.run(async (term) => {
      resolve();
      await new Promise<void>((stopped) =>
        term.signal.addEventListener("abort", () => stopped(), { once: true }),
      );
    });
  });
}

/** A leader, a candidate that waits, one that watches, and one that did nothing: all closed where they are. */
async function cycle(number: number): Promise<void> {
  const open = (target: Backend | string | undefined = backend): Promise<Election> =>
    openElection({ name: "cycles", backend: target, ttlMs: 2_000, id: `c${number}` });
  await using leader = await open();
  await (number % 2 === 0 ? lead(leader) : work(leader));
  // Memory is shared by handing the same backend on; files are shared by their directory.
  const shared = backend?.startsWith("memory:") === true ? leader.backend : backend;
  await using waiting = await open(shared);
  waiting.campaign().catch(() => {}); // rejected by close(), as it should be
  await using watching = await open(shared);
  const seen = new Promise<void>((resolve) => watching.on("leader", () => resolve()));
  await using _idle = await open(shared);
  await seen;
}

/** Handles that are closing are gone after a turn of the event loop. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

// The first watch of a process opens a descriptor for all that follow, and Node keeps it.
const watcher = watch(tmpdir());
watcher.close();
await once(watcher, "close");
for (let number = 0; number < WARM_UP; number++) await cycle(number);
await settle();
const before = residue();
for (let number = 0; number < CYCLES; number++) await cycle(number);
await settle();
console.log(JSON.stringify({ before, after: residue() }));
