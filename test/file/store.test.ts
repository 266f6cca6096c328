import {
  cp,
  mkdir,
  open as openFile,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  unlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import type { FileSystem } from "../../src/backends/file/fs.js";
import { nodeFileSystem } from "../../src/backends/file/node-fs.js";
import type { Clock } from "../../src/seam/clock.js";
import { systemClock } from "../../src/kit/clock.js";
import { deferred } from "../../src/kit/wait.js";
import { interposed } from "./interposed.js";
import { open, recordsOf, storeIn, tempDirectory, tree } from "./support.js";

/** The wall clock set by hand. */
function wallAt(wall: () => number): Clock {
  return {
    now: () => systemClock.now(),
    wall,
    boot: () => systemClock.boot(),
    after: (delayMs, callback) => systemClock.after(delayMs, callback),
    random: () => systemClock.random(),
    uniqueId: () => systemClock.uniqueId(),
  };
}

describe("compare and swap", () => {
  it("writes on the version that is current, and on no other", async () => {
    const store = storeIn(await tempDirectory());
    expect(await store.read("a", open)).toBeNull();
    expect(await store.write("a", 5n, "early", open)).toBeNull();
    const first = await store.write("a", null, "one", open);
    expect(first?.record).toBe("one");
    expect(await store.write("a", null, "again", open)).toBeNull();
    const second = await store.write("a", first!.version, "two", open);
    expect(second!.version).toBe(first!.version + 1n);
    expect(await store.write("a", first!.version, "late", open)).toBeNull();
    expect(await store.read("a", open)).toMatchObject({ version: second!.version, record: "two" });
    expect(await store.read("b", open)).toBeNull();
  });

  it("starts at the epoch in microseconds", async () => {
    const store = storeIn(await tempDirectory());
    const before = BigInt(Date.now()) * 1_000n;
    const entry = await store.write("a", null, "x", open);
    expect(entry!.version).toBeGreaterThanOrEqual(before);
    expect(entry!.version).toBeLessThan(BigInt(Date.now() + 1) * 1_000n);
  });

  it("gives every version a renewalId of its own, also when its text repeats", async () => {
    const store = storeIn(await tempDirectory());
    const one = await store.write("a", null, "same", open);
    const two = await store.write("a", one!.version, "same", open);
    expect(one!.renewalId).not.toBe(two!.renewalId);
    expect((await store.read("a", open))!.renewalId).toBe(two!.renewalId);
  });

  it("lets exactly one of many win an empty directory, though their clocks draw different numbers", async () => {
    for (let round = 0; round < 20; round++) {
      const root = await tempDirectory();
      let wall = 1_700_000_000_000;
      const clock = wallAt(() => (wall += 1000));
      const stores = Array.from({ length: 8 }, () => storeIn(root, { clock }));
      const results = await Promise.allSettled(
        stores.map((store, i) => store.write("a", null, `w${i}`, open)),
      );
      const won = results.flatMap((r) => (r.status === "fulfilled" && r.value !== null ? [r.value] : []));
      expect(won).toHaveLength(1);
      expect(await stores[0]!.read("a", open)).toMatchObject({
        version: won[0]!.version,
        record: won[0]!.record,
      });
    }
  });

  it("lets exactly one of many win a version", async () => {
    const root = await tempDirectory();
    const stores = Array.from({ length: 8 }, () => storeIn(root));
    let current = (await stores[0]!.write("a", null, "start", open))!.version;
    for (let round = 0; round < 40; round++) {
      const results = await Promise.all(stores.map((store, i) => store.write("a", current, `w${i}`, open)));
      const won = results.filter((entry) => entry !== null);
      expect(won).toHaveLength(1);
      current = won[0]!.version;
    }
  });

  it("does not write what was given up before the link", async () => {
    const root = await tempDirectory();
    const controller = new AbortController();
    const fs = interposed(
      () => {},
      (step) => (step === "create" ? controller.abort(new Error("enough")) : undefined),
    );
    await expect(storeIn(root, { fs }).write("a", null, "x", { signal: controller.signal })).rejects.toThrow(
      "enough",
    );
    expect(await storeIn(root).read("a", open)).toBeNull();
    expect(await readdir(join(root, "staging"))).toEqual([]);
  });
});

describe("what is kept", () => {
  it("is the newest sixteen records, no temp file, private to the user", async () => {
    const root = await tempDirectory();
    const store = storeIn(root);
    let version: bigint | null = null;
    for (let i = 0; i < 60; i++) version = (await store.write("a", version, `r${i}`, open))!.version;
    expect(
      (await readdir(join(root, "staging"))).length,
      "old records that wait to be written over",
    ).toBeLessThan(4);
    await store[Symbol.asyncDispose]();
    const names = await readdir(recordsOf(root, "a"));
    const newest = Array.from({ length: 16 }, (_, i) => (version! - BigInt(i)).toString());
    expect(names.sort()).toEqual(newest.sort());
    expect(await readdir(join(root, "staging"))).toEqual([]);
    const { mode } = await stat(join(recordsOf(root, "a"), names[0]!));
    expect(mode & 0o777).toBe(0o600);
    expect((await stat(recordsOf(root, "a"))).mode & 0o777).toBe(0o700);
  });

  it("is left alone where it is not a record", async () => {
    const root = await tempDirectory();
    const store = storeIn(root);
    await mkdir(recordsOf(root, "a"), { recursive: true });
    await writeFile(join(recordsOf(root, "a"), "README"), "mine");
    let version: bigint | null = null;
    for (let i = 0; i < 30; i++) version = (await store.write("a", version, `r${i}`, open))!.version;
    expect(await readFile(join(recordsOf(root, "a"), "README"), "utf8")).toBe("mine");
  });

  it("is cleared of what killed writers left, but not of what a live one may be writing", async () => {
    const root = await tempDirectory();
    await mkdir(join(root, "staging"), { recursive: true });
    const [old, young, strange] = [`${Date.now() - 7_200_000}-aa`, `${Date.now() - 60_000}-bb`, "notes.txt"];
    for (const name of [old, young, strange]) await writeFile(join(root, "staging", name), "x");
    await storeIn(root).write("a", null, "x", open);
    expect((await readdir(join(root, "staging"))).sort()).toEqual([young, strange].sort());
  });

  it("costs a writer whose temp file was swept one attempt, and nobody a record", async () => {
    const root = await tempDirectory();
    const fs = interposed(async (step) => {
      if (step !== "link") return;
      for (const name of await readdir(join(root, "staging"))) await unlink(join(root, "staging", name));
    });
    await expect(storeIn(root, { fs }).write("a", null, "x", open)).rejects.toMatchObject({
      code: "unavailable",
    });
    expect(await storeIn(root).read("a", open)).toBeNull();
    expect(await storeIn(root).write("a", null, "x", open)).not.toBeNull();
  });
});

describe("the second look", () => {
  /** A writer stopped between its first look and its link. */
  async function sleeper(root: string, expected: bigint | null) {
    const asleep = deferred<void>();
    const awake = deferred<void>();
    const fs = interposed(async (step) => {
      if (step !== "link") return;
      asleep.resolve();
      await awake.promise;
    });
    const result = storeIn(root, { fs }).write("a", expected, "sleeper", open);
    result.catch(() => {});
    await asleep.promise;
    return { result, wake: () => awake.resolve() };
  }

  it("catches a writer that creates a pruned number again", async () => {
    const root = await tempDirectory();
    const store = storeIn(root);
    const first = await store.write("a", null, "start", open);
    const second = await store.write("a", first!.version, "second", open);
    const { result, wake } = await sleeper(root, second!.version);
    let version = second!.version;
    for (let i = 0; i < 20; i++) version = (await store.write("a", version, `r${i}`, open))!.version;
    wake();
    await expect(result).rejects.toMatchObject({ code: "unavailable", retriable: true });
    expect(await store.read("a", open)).toMatchObject({ version, record: "r19" });
    expect(await store.write("a", version, "next", open)).not.toBeNull();
  });

  it("catches a writer that took the directory for empty and slept", async () => {
    const root = await tempDirectory();
    const { result, wake } = await sleeper(root, null);
    const store = storeIn(root);
    let version: bigint | null = null;
    for (let i = 0; i < 20; i++) version = (await store.write("a", version, `r${i}`, open))!.version;
    wake();
    await expect(result).rejects.toMatchObject({ code: "unavailable" });
    expect(await store.read("a", open)).toMatchObject({ version, record: "r19" });
    for (let i = 0; i < 20; i++) version = (await store.write("a", version, `s${i}`, open))!.version;
    expect(await readdir(recordsOf(root, "a"))).not.toContain("first");
  });

  it("says don't know, not no, when others have already built on the record", async () => {
    const root = await tempDirectory();
    const store = storeIn(root);
    const first = await store.write("a", null, "start", open);
    const fs = interposed(
      () => {},
      async (step) => {
        if (step !== "link") return;
        const mine = await store.read("a", open);
        await store.write("a", mine!.version, "successor", open);
      },
    );
    await expect(storeIn(root, { fs }).write("a", first!.version, "x", open)).rejects.toMatchObject({
      code: "unavailable",
    });
  });
});

describe("a wiped directory", () => {
  const wipes: [string, (root: string) => Promise<void>][] = [
    ["the root", (root) => rm(root, { recursive: true })],
    ["the election", (root) => rm(recordsOf(root, "a"), { recursive: true })],
    [
      "the records",
      async (root) => {
        for (const name of await readdir(recordsOf(root, "a")))
          await unlink(join(recordsOf(root, "a"), name));
      },
    ],
  ];
  it.each(wipes)("does not bring old tokens back: %s", async (_, wipe) => {
    const root = await tempDirectory();
    const store = storeIn(root);
    let version = (await store.write("a", null, "start", open))!.version;
    for (let i = 0; i < 5; i++) version = (await store.write("a", version, `r${i}`, open))!.version;
    await wipe(root);
    expect(await store.read("a", open)).toBeNull();
    expect(await store.write("a", version, "renewal", open)).toBeNull();
    const other = await storeIn(root).write("a", null, "other", open);
    expect(other!.version).toBeGreaterThan(version);
  });

  it("does not bring back what this process has seen, even if the wall clock fell back", async () => {
    const root = await tempDirectory();
    let wall = Date.now();
    const store = storeIn(root, { clock: wallAt(() => wall) });
    const { version } = (await store.write("a", null, "start", open))!;
    await rm(root, { recursive: true });
    wall = 5000;
    expect((await store.write("a", null, "again", open))!.version).toBeGreaterThan(version);
  });

  it("in the middle of a write is don't know", async () => {
    const root = await tempDirectory();
    const store = storeIn(root);
    const { version } = (await store.write("a", null, "start", open))!;
    const fs = interposed((step) =>
      step === "link" ? rm(recordsOf(root, "a"), { recursive: true }) : undefined,
    );
    await expect(storeIn(root, { fs }).write("a", version, "x", open)).rejects.toMatchObject({
      code: "unavailable",
    });
  });
});

describe("what waits for the disk", () => {
  it("is the name of every write that hands out a token, and then one in sixteen", async () => {
    const root = await tempDirectory();
    const synced: string[] = [];
    const durable: boolean[] = [];
    let [began, ended] = [0, 0];
    const fs = interposed(
      (step, path) => {
        began++;
        if (step === "syncDirectory") synced.push(path);
      },
      () => void ended++,
    );
    // Old records are removed after the write has returned.
    const rest = (): Promise<void> =>
      vi.waitFor(() => expect(ended).toBe(began), { interval: 1, timeout: 10_000 });
    const spying = {
      ...fs,
      create: (path: string, data: Uint8Array, d: boolean) => (durable.push(d), fs.create(path, data, d)),
    };
    const inner = storeIn(root, {
      fs: spying,
      durability: (record) => (record.startsWith("acquire") ? "number" : "none"),
    });
    const store = {
      write: async (...args: Parameters<typeof inner.write>) => {
        const entry = await inner.write(...args);
        await rest();
        return entry;
      },
    };
    const directory = recordsOf(root, "a");
    let version = (await store.write("a", null, "acquire 1", open))!.version;
    expect(synced).toEqual([join(root, "elections"), directory]);
    expect(durable).toEqual([true]);
    version = (await store.write("a", version, "release", open))!.version;
    expect(synced).toHaveLength(2);
    version = (await store.write("a", version, "acquire 2", open))!.version;
    expect(synced).toHaveLength(3);
    for (let i = 0; i < 15; i++) version = (await store.write("a", version, "renew", open))!.version;
    expect(synced).toHaveLength(3);
    // The next one prunes the acquiring record: a later name must be on the disk before.
    version = (await store.write("a", version, "renew", open))!.version;
    expect(synced).toHaveLength(4);
    for (let i = 0; i < 16; i++) version = (await store.write("a", version, "renew", open))!.version;
    expect(synced).toHaveLength(5);
    expect(durable.slice(1)).not.toContain(true);
  });

  it("is everything in a store of durable records", async () => {
    const root = await tempDirectory();
    let syncs = 0;
    const fs = interposed((step) => void (step === "syncDirectory" && syncs++));
    const store = storeIn(root, { fs, subdirectory: "records" });
    const { version } = (await store.write("a", null, "x", open))!;
    await store.write("a", version, "y", open);
    expect(syncs).toBe(3);
    expect(await tree(root)).toContain("records/n-a/first");
  });

  it("makes a failed sync don't know", async () => {
    const root = await tempDirectory();
    const fs = interposed((step, path) => {
      if (step === "syncDirectory" && path.includes("n-a"))
        throw Object.assign(new Error("EIO: i/o error"), { code: "EIO" });
    });
    await expect(storeIn(root, { fs }).write("a", null, "x", open)).rejects.toMatchObject({
      code: "unavailable",
    });
  });
});

describe("an old record that is written over", () => {
  it("is itself or is looked past, by a reader that was too slow for it", async () => {
    const root = await tempDirectory();
    const store = storeIn(root, { durability: () => "none" });
    const first = (await store.write("a", null, "0", open))!.version;
    let version = first;
    for (let i = 1; i <= 20; i++) version = (await store.write("a", version, `${i}`, open))!.version;
    const [listed, go] = [deferred<void>(), deferred<void>()];
    let slow = true;
    const fs: FileSystem = {
      ...interposed(() => {}),
      // Opened while it was the newest, and read when it was none.
      read: async (path, limit) => {
        if (!slow) return nodeFileSystem.read(path, limit);
        slow = false;
        const file = await openFile(path, "r");
        listed.resolve();
        await go.promise;
        const data = await file.readFile();
        await file.close();
        return { data, mark: "old" };
      },
    };
    const reading = storeIn(root, { fs }).read("a", open);
    await listed.promise;
    for (let i = 21; i <= 60; i++) version = (await store.write("a", version, `${i}`, open))!.version;
    go.resolve();
    const entry = await reading;
    expect(`${entry!.version - first}`, "a version with its own record").toBe(entry!.record);
    await store[Symbol.asyncDispose]();
  });

  it("is read to its end, and no further", async () => {
    const root = await tempDirectory();
    const store = storeIn(root, { durability: () => "none" });
    let version = (await store.write("a", null, "0", open))!.version;
    for (let i = 1; i < 60; i++) {
      const text = "x".repeat((i * 37) % 3000);
      version = (await store.write("a", version, text, open))!.version;
      expect((await storeIn(root).read("a", open))?.record).toBe(text);
    }
    await store[Symbol.asyncDispose]();
  });
});

describe("the record that a write is built on", () => {
  it("is recognised by its writer where the file system changed the time of writing", async () => {
    const root = await tempDirectory();
    const store = storeIn(root);
    const first = (await store.write("a", null, "0", open))!.version;
    const second = (await store.write("a", first, "1", open))!.version;
    await utimes(join(recordsOf(root, "a"), `${second}`), 5, 5);
    expect((await store.write("a", second, "2", open))?.record).toBe("2");
  });

  it("is not another one with its number", async () => {
    const root = await tempDirectory();
    const store = storeIn(root);
    const first = (await store.write("a", null, "0", open))!.version;
    const older = join(root, "older");
    await cp(recordsOf(root, "a"), older, { recursive: true });
    const second = (await store.write("a", first, "1", open))!.version;
    await rm(recordsOf(root, "a"), { recursive: true });
    await rename(older, recordsOf(root, "a"));
    const other = storeIn(root);
    expect((await other.read("a", open))?.version).toBe(first);
    expect((await other.write("a", first, "another's", open))?.version).toBe(second);
    expect(await store.write("a", second, "2", open)).toBeNull();
    expect((await store.read("a", open))?.record).toBe("another's");
  });
});

describe("the steady state", () => {
  it("creates no file, and asks for little", async () => {
    const root = await tempDirectory();
    const steps: string[] = [];
    const store = storeIn(root, {
      fs: interposed((step) => void steps.push(step)),
      durability: () => "none",
    });
    let version = (await store.write("a", null, "0", open))!.version;
    const idle = () => vi.waitFor(() => expect(["remove", "rename"]).toContain(steps.at(-1)));
    for (let i = 1; i < 20; i++) {
      await idle();
      steps.length = 0;
      version = (await store.write("a", version, `${i}`, open))!.version;
    }
    await idle();
    expect(steps).toEqual(["mark", "rewrite", "link", "list", "rename"]);
    await store[Symbol.asyncDispose]();
  });
});

describe("watching", () => {
  it("wakes when it is armed, for news, and not for pruning; and ends with its signal", async () => {
    const root = await tempDirectory();
    const store = storeIn(root);
    const other = storeIn(root);
    let version = (await other.write("a", null, "x", open))!.version;
    for (let i = 0; i < 17; i++) version = (await other.write("a", version, "x", open))!.version;
    const controller = new AbortController();
    let wakes = 0;
    let news = deferred<void>();
    const watching = store.watch("a", () => (wakes++, news.resolve()), { signal: controller.signal });
    await news.promise;
    for (let i = 0; i < 5; i++) {
      news = deferred<void>();
      version = (await other.write("a", version, "x", open))!.version;
      await news.promise;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(wakes).toBe(6);
    controller.abort();
    await watching;
  });

  it("ends when the directory is removed, so that it can be armed anew", async () => {
    const root = await tempDirectory();
    const store = storeIn(root);
    await store.write("a", null, "x", open);
    const armed = deferred<void>();
    const watching = store.watch("a", () => armed.resolve(), open);
    await armed.promise;
    await rm(recordsOf(root, "a"), { recursive: true });
    await watching;
  });

  it("ends with the store, and swallows what the file system says against it", async () => {
    const root = await tempDirectory();
    const store = storeIn(root);
    const watching = store.watch("a", () => {}, open);
    await store[Symbol.asyncDispose]();
    await watching;
    const deaf = storeIn(root, {
      fs: { ...interposed(() => {}), watch: () => Promise.reject(new Error("ENOSPC: no more watches")) },
    });
    await deaf.watch("a", () => {}, open);
    await expect(store.read("a", open)).rejects.toMatchObject({ code: "state" });
  });
});

describe("faults", () => {
  it.each([
    ["EACCES", "forbidden"],
    ["EROFS", "forbidden"],
    ["ENOSPC", "unavailable"],
    ["EMFILE", "unavailable"],
    ["ENOSYS", "unsupported"],
    ["EWHATEVER", "unavailable"],
  ])("%s is %s, with the cause and what to do", async (errno, code) => {
    const root = await tempDirectory();
    const fault = Object.assign(new Error(`${errno}: no`), { code: errno });
    const fs = interposed((step) => {
      if (step === "link") throw fault;
    });
    await expect(storeIn(root, { fs }).write("a", null, "x", open)).rejects.toMatchObject({
      code,
      cause: fault,
    });
    expect(await readdir(join(root, "staging"))).toEqual([]);
  });

  it("a record too large is refused before anything is written", async () => {
    const root = await tempDirectory();
    await expect(storeIn(root).write("a", null, "x".repeat(70_000), open)).rejects.toMatchObject({
      code: "invalid",
    });
    expect(await tree(root)).toEqual([]);
  });

  it("a fault while pruning does not undo the write", async () => {
    const root = await tempDirectory();
    const fs = interposed((step, path) => {
      if ((step === "rename" || step === "remove") && path.includes("n-a"))
        throw Object.assign(new Error("EIO"), { code: "EIO" });
    });
    const store = storeIn(root, { fs });
    let version: bigint | null = null;
    for (let i = 0; i < 20; i++) version = (await store.write("a", version, "x", open))!.version;
    await store[Symbol.asyncDispose]();
    expect(await nodeFileSystem.list(recordsOf(root, "a"))).toHaveLength(20);
  });
});
