/** What others may have put in our way: a clear refusal or a harmless wait, nothing outside the directory, no crash. */
import { execFileSync } from "node:child_process";
import {
  chown,
  link,
  mkdir,
  open as openFile,
  readdir,
  readFile,
  symlink,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { encodeEnvelope } from "../../src/backends/file/envelope.js";
import { encodeKey } from "../../src/backends/file/names.js";
import { fileBackend } from "../../src/backends/file/index.js";
import { systemClock } from "../../src/kit/clock.js";
import { Election } from "../../src/election/election.js";
import { never, open, recordsOf, storeIn, tempDirectory, tree } from "./support.js";

const isRoot = process.geteuid?.() === 0;
const NUMBER = "1763000000000";
const PLACE = `elections/${encodeKey("a")}`;

/** Ways to plant something under a number. */
const plants: [string, (path: string, root: string) => Promise<void>][] = [
  ["an empty file", (path) => writeFile(path, "")],
  ["garbage", (path) => writeFile(path, Buffer.from([0, 255, 254, 10, 123, 0]))],
  [
    "a sparse gigabyte",
    async (path) => {
      const file = await openFile(path, "wx");
      await file.truncate(1024 ** 3);
      await file.close();
    },
  ],
  [
    "wrong types",
    (path) => writeFile(path, '{"v":"1","number":1763000000000,"id":[]}\n{"v":1,"ttlMs":"soon"}'),
  ],
  [
    "a huge token",
    (path) =>
      writeFile(
        path,
        envelope(`{"v":1,"ttlMs":500,"holder":"x","token":"${"9".repeat(5000)}","since":1,"value":""}`),
      ),
  ],
  [
    "a token beyond its number",
    (path) =>
      writeFile(
        path,
        envelope('{"v":1,"ttlMs":500,"holder":null,"token":"99999999999999999999","since":1,"value":""}'),
      ),
  ],
  [
    "a ttl of 1e300",
    (path) => writeFile(path, envelope('{"v":1,"ttlMs":1e300,"holder":5,"token":null,"since":1,"value":""}')),
  ],
  ["deep JSON", (path) => writeFile(path, envelope("[".repeat(30_000)))],
  [
    "a record of another number",
    (path) => writeFile(path, encodeEnvelope({ number: 7n, id: "x", record: lease(null) }, PLACE)),
  ],
  ["a vacant record without its first line", (path) => writeFile(path, lease(null))],
  [
    "a symbolic link to a vacant record",
    async (path, root) => {
      await writeFile(join(root, "elsewhere"), envelope(lease(null)));
      await symlink(join(root, "elsewhere"), path);
    },
  ],
  ["a dangling link", (path) => symlink("nowhere", path)],
  ["a FIFO", async (path) => void execFileSync("mkfifo", [path])],
  ["a directory", (path) => mkdir(path).then(() => {})],
];

function lease(holder: string | null): string {
  return JSON.stringify({ v: 1, ttlMs: 500, holder, token: null, since: 1, value: "" });
}

function envelope(record: string): Uint8Array {
  return encodeEnvelope({ number: BigInt(NUMBER), id: "x", record }, PLACE);
}

describe("a planted record", () => {
  it.each(plants)(
    "that is %s is held by someone unknown, and is succeeded after the ttl",
    async (what, plant) => {
      const root = await tempDirectory();
      const subdirectory = recordsOf(root, "a");
      await mkdir(subdirectory, { recursive: true, mode: 0o700 });
      await plant(join(subdirectory, NUMBER), root);
      await using backend = fileBackend({ directory: root });
      const candidacy = {
        election: "a",
        candidate: "c",
        value: "",
        ttlMs: 500,
        retryMs: 100,
        attemptMs: 10_000,
      };
      const started = performance.now();
      expect(await backend.campaign(candidacy, { wait: false, signal: never })).toBeNull();
      expect(performance.now() - started).toBeLessThan(5000);
      if (what === "a ttl of 1e300") return; // held for the longest foreign ttl there is: a day
      const hold = await backend.campaign(candidacy, { wait: true, signal: never });
      expect(performance.now() - started).toBeGreaterThan(495);
      expect(hold?.token).toBe(BigInt(NUMBER) + 1n);
    },
  );

  it.runIf(isRoot)("of another user is held by someone unknown", async () => {
    const root = await tempDirectory();
    const subdirectory = recordsOf(root, "a");
    await mkdir(subdirectory, { recursive: true });
    await writeFile(join(subdirectory, NUMBER), envelope(lease(null)));
    await chown(join(subdirectory, NUMBER), 65534, 65534);
    expect(await storeIn(root).read("a", open)).toMatchObject({ version: BigInt(NUMBER), record: "" });
  });

  it("with a number no clock could have brought is refused loudly, not followed", async () => {
    for (const name of ["9223372036854775807", "9999999999999999999", "9".repeat(100)]) {
      const root = await tempDirectory();
      await mkdir(recordsOf(root, "a"), { recursive: true });
      await writeFile(join(recordsOf(root, "a"), name), "x");
      const store = storeIn(root);
      await expect(store.read("a", open)).rejects.toMatchObject({ code: "conflict", retriable: false });
      await expect(store.write("a", null, "x", open)).rejects.toThrow(/remove that file/);
    }
  });

  it("that stands for the first one and tells no number is refused loudly", async () => {
    const root = await tempDirectory();
    await mkdir(recordsOf(root, "a"), { recursive: true });
    await writeFile(join(recordsOf(root, "a"), "first"), "garbage");
    await expect(storeIn(root).read("a", open)).rejects.toMatchObject({ code: "conflict" });
    await expect(storeIn(root).write("a", null, "x", open)).rejects.toThrow(/"first".*remove it/s);
  });
});

describe("a planted directory", () => {
  it.each(["elections", "elections/n-a", "staging"])(
    "%s that is a link elsewhere is refused, and nothing written there",
    async (path) => {
      const root = await tempDirectory();
      const victim = await tempDirectory();
      await mkdir(join(root, "elections"), { recursive: true });
      if (path === "elections") {
        const other = await tempDirectory();
        await symlink(victim, join(other, "elections"));
        await expect(storeIn(other).write("a", null, "x", open)).rejects.toMatchObject({ code: "conflict" });
      } else {
        await symlink(victim, join(root, path));
        await expect(storeIn(root).write("a", null, "x", open)).rejects.toMatchObject({ code: "conflict" });
      }
      expect(await readdir(victim)).toEqual([]);
    },
  );

  it("that is a file is refused", async () => {
    const root = await tempDirectory();
    await mkdir(join(root, "elections"));
    await writeFile(join(root, "elections", "n-a"), "x");
    await expect(storeIn(root).read("a", open)).rejects.toMatchObject({ code: "conflict" });
    await expect(storeIn(root).write("a", null, "x", open)).rejects.toMatchObject({ code: "conflict" });
  });
});

describe("a planted temp file", () => {
  it("is not written through", async () => {
    const root = await tempDirectory();
    const victim = join(root, "victim");
    await writeFile(victim, "precious");
    await mkdir(join(root, "staging"));
    const clock = { ...clockWith("ffff"), wall: () => 1_763_000_000_000 };
    await symlink(victim, join(root, "staging", "1763000000000-ffff"));
    await expect(storeIn(root, { clock }).write("a", null, "x", open)).rejects.toThrow(/EEXIST/);
    expect(await readFile(victim, "utf8")).toBe("precious");
    await link(victim, join(root, "staging", "1763000000000-eeee"));
    const hard = { ...clockWith("eeee"), wall: () => 1_763_000_000_000 };
    await expect(storeIn(root, { clock: hard }).write("a", null, "x", open)).rejects.toThrow(/EEXIST/);
    expect(await readFile(victim, "utf8")).toBe("precious");
  });
});

describe("a file that is a record and something else", () => {
  it("is not written over when it was pruned", async () => {
    const root = await tempDirectory();
    const store = storeIn(root, { durability: () => "none" });
    const first = await store.write("a", null, "0", open);
    // Where a record would be that is pruned soon.
    const [victim, planted] = [join(root, "victim"), join(recordsOf(root, "a"), `${first!.version - 1n}`)];
    await writeFile(victim, "precious", { mode: 0o600 });
    await link(victim, planted);
    let { version } = first!;
    for (let i = 1; i < 40; i++) ({ version } = (await store.write("a", version, "x".repeat(i), open))!);
    await store[Symbol.asyncDispose]();
    expect(await readFile(victim, "utf8")).toBe("precious");
    expect((await readdir(recordsOf(root, "a"))).length).toBe(16);
  });
});

function clockWith(id: string) {
  return {
    now: () => systemClock.now(),
    boot: () => systemClock.boot(),
    after: (delayMs: number, callback: () => void) => systemClock.after(delayMs, callback),
    random: () => systemClock.random(),
    uniqueId: () => id,
  };
}

describe("evil names", () => {
  it("stay inside, and apart", async () => {
    const outer = await tempDirectory();
    const root = join(outer, "root");
    const store = storeIn(root);
    const names = [
      "../x",
      "/etc/x",
      "a/b",
      "a\\b",
      ".",
      "..",
      "a\0b",
      "__proto__",
      "constructor",
      "x".repeat(300),
      "A",
      "a",
      " a",
      "é",
      "e\u0301",
    ];
    for (const name of names) expect((await store.write(name, null, name, open))!.record).toBe(name);
    for (const name of names) expect((await store.read(name, open))!.record).toBe(name);
    expect(await readdir(outer)).toEqual(["root"]);
    expect((await readdir(root)).sort()).toEqual(["elections", "staging"]);
    expect(await readdir(join(root, "elections"))).toHaveLength(names.length);
    for (const path of await tree(root)) expect(path.split("/").length).toBeLessThanOrEqual(3);
  });

  it("are refused by elections with a reason where they are no names at all", async () => {
    const backend = fileBackend({ directory: await tempDirectory() });
    for (const name of ["", "a\0b", "x".repeat(300), "\ud800"])
      expect(() => new Election({ name, backend })).toThrow(expect.objectContaining({ code: "invalid" }));
    for (const ttlMs of [0, -1, Number.NaN, 10, 2 ** 31, 1e12])
      expect(() => new Election({ name: "a", backend, ttlMs })).toThrow(/ttlMs/);
    // @ts-expect-error: durations are numbers
    expect(() => new Election({ name: "a", backend, ttlMs: "10" })).toThrow(/ttlMs/);
  });
});
