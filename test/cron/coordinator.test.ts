/** node-cron's coordinator: what its record remembers of a task, and what happens when it remembers no more. */
import { beforeEach, describe, expect, it } from "vitest";
import { memoryBackend } from "../../src/index.js";
import { nodeCronCoordinator } from "../../src/cron/index.js";
import type { RunCoordinator } from "../../src/cron/index.js";
import type { BackendWithRecords, CallOptions } from "../../src/seam/backend.js";
import type { Entry } from "../../src/seam/table.js";

const REMEMBERED = 100;
const FIRST = Date.UTC(2026, 10, 16);
const { signal } = new AbortController();

const keyOf = (slot: number): string => `bill:${new Date(FIRST + slot * 60_000).toISOString()}`;

let backend: BackendWithRecords;
let coordinator: RunCoordinator;

beforeEach(() => {
  backend = memoryBackend();
  coordinator = nodeCronCoordinator(backend);
});

const ask = (slot: number): Promise<boolean> => coordinator.shouldRun(keyOf(slot), 1_000);

describe("a task of many slots", () => {
  it("is never run for a slot that is older than all that are remembered", async () => {
    for (let slot = 1; slot <= REMEMBERED; slot++) expect(await ask(slot)).toBe(true);
    // Full, and nothing was dropped yet: slot 0 may have been run and dropped, or never asked for.
    expect(await ask(0)).toBe(false);
    expect(await ask(REMEMBERED + 1)).toBe(true); // drops slot 1
    expect(await ask(1)).toBe(false);
    expect(await ask(2)).toBe(false);
  });

  it("is run for an older slot that nobody has asked for, as long as none was dropped", async () => {
    for (let slot = 1; slot < REMEMBERED; slot++) await ask(slot);
    expect([await ask(0), await ask(0)]).toEqual([true, false]);
  });

  it("is run for a slot between those remembered, and the oldest is dropped for it", async () => {
    for (let slot = 1; slot <= REMEMBERED + 1; slot++) if (slot !== 50) await ask(slot);
    expect([await ask(50), await ask(50), await ask(1)]).toEqual([true, false, false]);
  });

  it("keeps its record small", async () => {
    for (let slot = 0; slot < REMEMBERED + 20; slot++) await ask(slot);
    const { record } = (await backend.records.read("cron.node.bill", { signal }))!;
    expect((JSON.parse(record) as { slots: number[] }).slots).toEqual(
      Array.from({ length: REMEMBERED }, (_, i) => FIRST + (i + 20) * 60_000),
    );
  });
});

describe("a record that is not ours", () => {
  it.each(["something else", "{}", '{"v":2,"slots":[]}', '{"v":1,"slots":["x"]}', '{"v":1}', "null"])(
    "%s is left alone, and nothing is run",
    async (text) => {
      await backend.records.write("cron.node.bill", null, text, { signal });
      await expect(ask(0)).rejects.toMatchObject({ code: "conflict" });
      expect((await backend.records.read("cron.node.bill", { signal }))?.record).toBe(text);
    },
  );
});

/** Somebody else writes just before each of our first writes. */
function contended(races: number, other: () => string): BackendWithRecords {
  const { records } = backend;
  let left = races;
  return {
    ...backend,
    records: {
      read: (key: string, options: CallOptions) => records.read(key, options),
      write: async (key, expected, record, options): Promise<Entry | null> => {
        if (left-- > 0) {
          const now = await records.read(key, options);
          await records.write(key, now?.version ?? null, other(), options);
        }
        return records.write(key, expected, record, options);
      },
      [Symbol.asyncDispose]: async () => {},
    },
  };
}

describe("a lost race", () => {
  it("for another slot is no answer: it is asked again", async () => {
    const other = (): string => JSON.stringify({ v: 1, slots: [FIRST] });
    const racing = nodeCronCoordinator(contended(3, other));
    expect(await racing.shouldRun(keyOf(1), 1_000)).toBe(true);
    expect([await ask(1), await ask(0)]).toEqual([false, false]);
  });

  it("for this very slot is a no", async () => {
    const other = (): string => JSON.stringify({ v: 1, slots: [FIRST] });
    expect(await nodeCronCoordinator(contended(1, other)).shouldRun(keyOf(0), 1_000)).toBe(false);
  });

  it("without end is an error, so that node-cron skips the slot and says so", async () => {
    const other = (): string => JSON.stringify({ v: 1, slots: [FIRST] });
    await expect(
      nodeCronCoordinator(contended(Infinity, other)).shouldRun(keyOf(1), 1_000),
    ).rejects.toMatchObject({
      code: "unavailable",
    });
  });
});
