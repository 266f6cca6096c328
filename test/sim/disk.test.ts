import { expect, test } from "vitest";
import { Disk } from "../../src/testing/sim/disk.js";
import { DiskCalls } from "../../src/testing/sim/disk-calls.js";
import { noTrouble, StoreHost } from "../../src/testing/sim/network.js";
import { SimNode } from "../../src/testing/sim/node.js";
import { Oscillator } from "../../src/testing/sim/oscillator.js";
import { planOf } from "../../src/testing/sim/plan.js";
import { Random } from "../../src/testing/sim/random.js";
import { Scheduler } from "../../src/testing/sim/scheduler.js";

function machine(seed: number) {
  const scheduler = new Scheduler(seed);
  const host = new StoreHost(scheduler);
  const disk = new Disk(host, new Random(seed, "disk"));
  const node = new SimNode(1, seed, scheduler, new Oscillator(1, { mono: 0, boot: 0, wall: 0 }));
  const drawn = planOf(seed);
  const plan = { ...drawn, laggard: 0, latency: { ...drawn.latency, tail: 0 } };
  const connect = (purpose: string) =>
    disk.connect(new DiskCalls(node.process ?? node.start(), host, noTrouble(), plan, purpose));
  return { scheduler, disk, connect };
}

const bytes = new Uint8Array([1, 2, 3]);

test("a link is exclusive, and a listing is not atomic", async () => {
  let missed = 0;
  for (let seed = 1; seed <= 60; seed++) {
    const { scheduler, connect } = machine(seed);
    const [writer, reader] = [connect("writer"), connect("reader")];
    const write = async (): Promise<void> => {
      await writer.makeDirectory("/d");
      await writer.create("/temp", bytes, true).catch(() => {});
      await writer.create("/d/0", bytes, true);
      for (let i = 1; i < 200; i++) {
        await writer.create(`/d/${i}`, bytes, true);
        await writer.remove(`/d/${i - 1}`);
      }
      expect(await writer.link("/d/199", "/d/next")).toBe(true);
      expect(await writer.link("/d/199", "/d/next")).toBe(false);
    };
    const read = async (): Promise<void> => {
      for (let i = 0; i < 100; i++) {
        const names = await reader.list("/d").catch(() => ["not there yet"]);
        if (names.length === 0) missed++;
      }
    };
    const done = Promise.all([write(), read()]);
    await scheduler.run(5_000, () => false);
    await done;
  }
  // At every instant there was a file; a listing that takes its time sometimes sees none.
  expect(missed).toBeGreaterThan(0);
});

test("a loss of power leaves what was made durable, and not always the rest", async () => {
  const found = new Set<string>();
  for (let seed = 1; seed <= 40; seed++) {
    const { scheduler, disk, connect } = machine(seed);
    const fs = connect("fs");
    const done = (async () => {
      await fs.makeDirectory("/d");
      await fs.create("/d/kept", bytes, true);
      await fs.syncDirectory("/d");
      await fs.create("/d/perhaps", bytes, false);
      disk.losePower();
      const names = await fs.list("/d");
      expect(names).toContain("kept");
      const content = await fs.read("/d/perhaps", 10);
      found.add(names.includes("perhaps") ? `there, ${content?.data.length} bytes` : "gone");
    })();
    await scheduler.run(1_000, () => false);
    await done;
  }
  expect([...found].toSorted()).toEqual(["gone", "there, 0 bytes", "there, 3 bytes"]);
});
