/**
 * N processes add to a counter that only the lock protects, while they are
 * killed and frozen. CONCLAVE_LONG=1: ten times as many, and on Kubernetes
 * too.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporary } from "../fencing/rooms.js";
import { backends } from "../support/backends.js";
import { TestProcess } from "../support/processes.js";

const EACH = process.env["CONCLAVE_LONG"] === "1" ? 200 : 20;
const PROCESSES = 4;
const KILLS = process.env["CONCLAVE_LONG"] === "1" ? 20 : 3;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Frozen ones are woken when others must have taken over. */
async function thaw(processes: readonly TestProcess[], stop: { over: boolean }): Promise<number> {
  const woken = new WeakMap<TestProcess, number>();
  let count = 0;
  while (!stop.over) {
    await sleep(100);
    for (const process of processes) {
      const frozen = process.lines.filter((line) => line["event"] === "frozen").length;
      if (frozen <= (woken.get(process) ?? 0)) continue;
      woken.set(process, frozen);
      count++;
      void sleep(3_500).then(() => process.signal("SIGCONT"));
    }
  }
  return count;
}

describe.each(backends)("lock on $name", (room) => {
  test(
    `${PROCESSES} processes add ${EACH} each, ${KILLS} are killed, some freeze: the sum is exact`,
    { timeout: EACH * 20_000 },
    async () => {
      const url = await room.open();
      const counter = join(await temporary(), "counter");
      writeFileSync(counter, JSON.stringify({ value: 0, keys: [] }));
      const processes: TestProcess[] = [];
      const start = (times: number): TestProcess => {
        const args = [url, "counter", counter, `p${processes.length}`, `${times}`];
        const process = new TestProcess("test/lock/programs/incrementer.ts", args);
        processes.push(process);
        return process;
      };
      const added = (process: TestProcess): number =>
        process.lines.filter((line) => line["event"] === "added").length;
      const stop = { over: false };
      const thawing = thaw(processes, stop);
      for (let n = 0; n < PROCESSES; n++) start(EACH);
      for (let kill = 0; kill < KILLS; kill++) {
        const victim = processes[kill]!;
        await victim.line((line) => line["event"] === "added");
        await sleep(Math.random() * 300);
        victim.signal("SIGKILL");
        await victim.exited;
        start(Math.max(1, EACH - added(victim)));
      }
      await Promise.all(processes.map((process) => process.exited));
      stop.over = true;
      const freezes = await thawing;
      const { value, keys } = JSON.parse(readFileSync(counter, "utf8")) as { value: number; keys: string[] };
      const told = processes.flatMap((process) =>
        process.lines.filter((line) => line["event"] === "added").map((line) => line["key"]),
      );
      console.log(room.name, JSON.stringify({ value, told: told.length, freezes, kills: KILLS }));
      expect(keys.length).toBe(value);
      expect(new Set(keys).size).toBe(value);
      // Whatever was reported as added is there; a killed one may have added without being able to say so.
      expect(told.filter((key) => !keys.includes(key as string))).toEqual([]);
      const untold = keys.filter((key) => !told.includes(key));
      expect(untold.length).toBeLessThanOrEqual(KILLS);
      expect(value).toBe(told.length + untold.length);
      expect(value).toBeGreaterThanOrEqual(PROCESSES * EACH);
      for (const process of processes.slice(KILLS)) expect(process.stderr).toBe("");
    },
  );
});
