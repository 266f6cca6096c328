/**
 * Real replicas, one tick a second, the leader killed or frozen within 50 ms of
 * ticks, the store cut off twice. CONCLAVE_LONG=1: 300 ticks instead of 24,
 * and on Kubernetes too.
 */
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { backends } from "../support/backends.js";
import { temporary } from "../fencing/rooms.js";
import type { TestProcess } from "../support/processes.js";
import { Crew } from "./crew.js";
import type { Verdict } from "./crew.js";

const TICKS = process.env["CONCLAVE_LONG"] === "1" ? 300 : 24;
const REPLICAS = 3;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The next moment within 50 ms of a tick. */
async function nearTick(random: () => number): Promise<void> {
  const offset = (random() - 0.5) * 100;
  const now = Date.now();
  await sleep(Math.max(0, (Math.floor(now / 1000) + 1) * 1000 + offset - now));
}

/** The same faults in the same order on every run; their exact moments are the machine's. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

/** Dies in the middle of a run: what chance seldom hits. */
async function dieInRun(crew: Crew, leader: TestProcess): Promise<void> {
  leader.child.send("die");
  await Promise.race([leader.exited, sleep(5_000)]);
  if (leader.running) leader.child.send("live");
  else await crew.hire();
}

async function disturb(crew: Crew, random: () => number, inRun: boolean): Promise<void> {
  await nearTick(random);
  const leader = crew.leader();
  if (leader === undefined) return;
  if (inRun) {
    await dieInRun(crew, leader);
  } else if (random() < 0.5) {
    leader.signal("SIGKILL");
    await leader.exited;
    await crew.hire();
  } else {
    leader.signal("SIGSTOP");
    await sleep(2_800 + random() * 500);
    leader.signal("SIGCONT");
  }
}

async function cutStore(crew: Crew): Promise<void> {
  for (const member of crew.members) if (member.running) member.child.send("cut");
  await sleep(2_500);
  for (const member of crew.members) if (member.running) member.child.send("mend");
}

async function chaos(crew: Crew): Promise<void> {
  const random = seeded(TICKS);
  await Promise.all(Array.from({ length: REPLICAS }, () => crew.hire()));
  let cuts = 0;
  for (let disturbances = 0; crew.done() < TICKS; disturbances++) {
    await disturb(crew, random, disturbances % 3 === 1);
    await crew.gather();
    if (cuts < 2 && crew.done() > ((cuts + 1) * TICKS) / 3) {
      cuts++;
      await cutStore(crew);
    }
    const before = crew.done();
    // Let it work a little between two disturbances: at least one tick.
    while (crew.done() === before) await sleep(100);
  }
  expect(cuts).toBe(2);
}

const MODES = ["at-most-once", "at-least-once"] as const;

async function tried(url: string, mode: (typeof MODES)[number]): Promise<Verdict> {
  const crew = await Crew.open(url, `tick-${mode}`, mode, join(await temporary(), "log"));
  try {
    await chaos(crew);
  } finally {
    await crew.dismiss();
  }
  return crew.verdict();
}

describe.each(backends)("cron on $name", (room) => {
  test(
    `${TICKS} ticks in both modes, leaders killed and frozen at ticks, store cut twice`,
    { timeout: 60_000 + TICKS * 10_000 },
    async () => {
      const url = await room.open();
      const [most, least] = await Promise.all(MODES.map((mode) => tried(url, mode)));
      for (const verdict of [most!, least!]) {
        console.log(room.name, JSON.stringify({ ...verdict, notDone: verdict.notDone.length }));
        expect(verdict.instants).toBeGreaterThanOrEqual(TICKS - 1);
        // No attempt has the same number twice.
        expect(verdict.unmarked).toEqual([]);
      }
      expect(most!.duplicates).toEqual([]);
      expect(most!.unaccounted).toEqual([]);
      expect(least!.notDone).toEqual([]);
      // Else nothing was tried.
      expect(most!.reported).toBeGreaterThan(0);
      expect(least!.repeats).toBeGreaterThan(0);
    },
  );

  const library = ["x86_64", "aarch64"]
    .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)
    .find((path) => existsSync(path));

  test.skipIf(library === undefined)(
    "the leader's clock is set back an hour during the run: no tick runs twice (needs the package faketime)",
    { timeout: 90_000 },
    async () => {
      const folder = await temporary();
      const rate = join(folder, "faketime");
      await writeFile(rate, "+0");
      const crew = await Crew.open(await room.open(), "set-back", "at-most-once", join(folder, "log"));
      try {
        const faked = await crew.hire({
          LD_PRELOAD: library,
          FAKETIME_TIMESTAMP_FILE: rate,
          FAKETIME_NO_CACHE: "1",
          DONT_FAKE_MONOTONIC: "1",
          FAKETIME_DONT_FAKE_MONOTONIC: "1",
          NO_FAKE_STAT: "1",
        });
        await faked.line((line) => line["event"] === "elected");
        while (crew.done() < 3) await sleep(100);
        await Promise.all([crew.hire(), crew.hire()]);
        await writeFile(rate, "-3600");
        // It says so itself, and runs nothing.
        await faked.line((line) => String(line["error"]).includes("clock is 3"));
        const stuck = crew.done();
        faked.signal("SIGKILL");
        while (crew.done() < stuck + 4) await sleep(100);
      } finally {
        await crew.dismiss();
      }
      const verdict = crew.verdict();
      expect(verdict.duplicates).toEqual([]);
      expect(verdict.unaccounted).toEqual([]);
    },
  );
});
