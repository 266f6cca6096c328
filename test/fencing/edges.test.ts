/** What a fence says when it cannot do its work, and what it leaves open: files, records, requests. */
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FencedFile, RecordFence } from "../../src/fencing/index.js";
import { memoryBackend } from "../../src/index.js";
import { SetClock } from "../support/set-clock.js";

describe("a fenced file", () => {
  let parent: string;
  beforeEach(async () => {
    parent = await mkdtemp(join(tmpdir(), "conclave-fence-edges-"));
  });
  afterEach(async () => {
    await rm(parent, { recursive: true, force: true });
  });

  it("that is no directory is an error, not a file that nobody has written to yet", async () => {
    const path = join(parent, "plain");
    await writeFile(path, "something else");
    const file = new FencedFile({ path });
    await expect(file.read()).rejects.toThrow(/ENOTDIR/);
    await expect(file.check(7n)).rejects.toThrow(/ENOTDIR/);
  });

  it("whose staging directory was taken away fails, and does not take that for a lost race", async () => {
    const path = join(parent, "journal");
    const file = new FencedFile({ path });
    await file.append(7n, "a");
    await rm(join(path, "staging"), { recursive: true });
    await expect(file.append(7n, "b")).rejects.toThrow(/ENOENT/);
    expect((await file.read())?.data.toString()).toBe("a");
  });

  it.runIf(process.platform === "linux")("leaves no file descriptor open", async () => {
    const file = new FencedFile({ path: join(parent, "journal") });
    const open = async (): Promise<number> => (await readdir("/proc/self/fd")).length;
    await file.append(7n, "a");
    const before = await open();
    for (let i = 0; i < 30; i++) await file.append(7n, "b");
    for (let i = 0; i < 30; i++) await file.read();
    expect((await open()) - before).toBeLessThan(15);
  });

  it("leaves nothing in its staging directory", async () => {
    const path = join(parent, "journal");
    const file = new FencedFile({ path });
    await Promise.all(["a", "b", "c"].map((text) => file.append(7n, text)));
    expect(await readdir(join(path, "staging"))).toEqual([]);
  });
});

describe("a fence in a record", () => {
  const { signal } = new AbortController();

  it("names its writers from the first one on, and no others", async () => {
    const { records } = memoryBackend();
    const fence = new RecordFence({ records, name: "ledger" });
    await fence.write(7n, "a");
    const stored = async (): Promise<{ ids: string[] }> =>
      JSON.parse((await records.read("fence.ledger", { signal }))!.record) as { ids: string[] };
    const { ids } = await stored();
    expect(ids).toHaveLength(1);
    await fence.write(7n, "b");
    expect((await stored()).ids[0]).toBe(ids[0]);
    expect((await stored()).ids).toHaveLength(2);
  });

  it("is refused on a backend without records, and the error names it", () => {
    expect(() => new RecordFence({ records: undefined, name: "ledger" })).toThrow(/the fence "ledger"/);
  });

  it.each(["reading", "writing"] as const)("says what was not answered: %s", async (doing) => {
    const clock = new SetClock();
    const { records } = memoryBackend();
    const silent = (): Promise<never> => new Promise(() => {});
    const fence = new RecordFence({
      records: {
        ...records,
        read: (...args) => records.read(...args),
        [doing === "reading" ? "read" : "write"]: silent,
      },
      name: "ledger",
      clock,
    });
    const failed = fence.write(7n, "a").catch(String);
    for (let i = 0; i < 4; i++) await clock.advance(5_000);
    expect(await failed).toContain(`${doing} record "fence.ledger" was not answered within 5000 ms`);
  });
});
