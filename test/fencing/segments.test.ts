/** Fenced files on disk: what is written where, what is removed when, and who was first if two write at once. */
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { callbackify } from "node:util";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FencedFile } from "../../src/fencing/index.js";
import { VirtualClock } from "../../src/testing/index.js";

/** What happens between the link of a new segment and the look that confirms it. */
const after = vi.hoisted(() => ({ link: async (_path: string): Promise<void> => {} }));

vi.mock(import("node:fs"), async (original) => {
  const fs = await original();
  const link: typeof fs.link = Object.assign(
    (from: string, to: string, done: (error: NodeJS.ErrnoException | null) => void): void =>
      fs.link(from, to, (error) => {
        if (error !== null) done(error);
        else callbackify(after.link)(to, done);
      }),
    fs.link,
  );
  return { ...fs, link };
});

let parent = "";
let path = "";
let file: FencedFile;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), "conclave-segments-"));
  path = join(parent, "journal");
  file = new FencedFile({ path });
});

afterEach(async () => {
  after.link = async () => {};
  await rm(parent, { recursive: true, force: true });
});

const name = (number: number): string => String(number).padStart(16, "0");
const place = (number: number): string => join(path, name(number));
const content = async (of = file): Promise<string | undefined> => (await of.read())?.data.toString();
const segments = async (): Promise<number[]> =>
  (await readdir(path)).filter((each) => each !== "staging").map(Number);
const header = async (number: number): Promise<unknown> =>
  JSON.parse((await readFile(place(number), "utf8")).split("\n")[0]!);

describe("a fenced file", () => {
  it("is nothing before the first write, and then what was written, as bytes or as text", async () => {
    expect(await file.read()).toBeNull();
    await file.append(5n, "ä\n");
    await file.append(6n, Uint8Array.of(0, 255));
    expect(await file.read()).toEqual({ token: 6n, data: Buffer.from([195, 164, 10, 0, 255]) });
    await file.replace(6n, "new");
    await file.append(6n, "er");
    expect(await content()).toBe("newer");
  });

  it("is a directory of its own that only its owner can read", async () => {
    await file.append(5n, "x");
    const modes = await Promise.all(
      [path, join(path, "staging"), place(1)].map(async (p) => (await stat(p)).mode),
    );
    expect(modes.map((mode) => mode & 0o777)).toEqual([0o700, 0o700, 0o600]);
    expect(await readdir(join(path, "staging"))).toEqual([]);
    expect(() => new FencedFile({ path: "" })).toThrow(/path must name a directory/);
    // @ts-expect-error -- plain JavaScript can pass anything
    expect(() => new FencedFile({ path: undefined })).toThrow(/path must name a directory/);
  });

  it("links each segment to the one that it was built on", async () => {
    await file.append(5n, "a");
    await file.append(6n, "b");
    await file.replace(6n, "c");
    const all = [await header(1), await header(2), await header(3)] as { id: string }[];
    expect(all).toMatchObject([
      { v: 1, token: "5", parent: null, base: 1 },
      { v: 1, token: "6", parent: all[0]!.id, base: 1 },
      { v: 1, token: "6", parent: all[1]!.id, base: 3 },
    ]);
    expect(new Set(all.map(({ id }) => id)).size).toBe(3);
  });

  it("remembers a newer token by a check, and writes nothing for one that it knows", async () => {
    await file.check(5n);
    await file.check(5n);
    expect(await segments()).toEqual([1]);
    await file.check(6n);
    expect(await file.read()).toEqual({ token: 6n, data: Buffer.alloc(0) });
    await expect(file.check(5n)).rejects.toMatchObject({ token: 5n, highest: 6n });
    await expect(file.check(-1n)).rejects.toMatchObject({ code: "invalid" });
  });

  it("does nothing for a caller that has given up", async () => {
    const given = AbortSignal.abort(new Error("given up"));
    await expect(file.append(5n, "x", { signal: given })).rejects.toThrow("given up");
    await expect(file.replace(5n, "x", { signal: given })).rejects.toThrow("given up");
    await expect(file.check(5n, { signal: given })).rejects.toThrow("given up");
    expect(await file.read()).toBeNull();
  });

  it("keeps sixteen segments beside the present content, and removes older ones", async () => {
    for (let i = 1; i <= 20; i++) await file.append(5n, `${i}.`);
    expect(await segments()).toHaveLength(20);
    await file.replace(5n, "new");
    expect(await segments()).toEqual(Array.from({ length: 16 }, (_, i) => 6 + i));
    await file.append(5n, "er");
    expect(await segments()).toEqual(Array.from({ length: 16 }, (_, i) => 7 + i));
    expect(await content()).toBe("newer");
  });

  it("joins a chain that has grown long, so that reading stays cheap", { timeout: 60_000 }, async () => {
    for (let i = 0; i < 257; i++) await file.append(5n, "x");
    expect(await segments()).toHaveLength(257);
    await file.append(6n, "y");
    expect(await segments()).toHaveLength(16);
    expect(await header(258)).toMatchObject({ base: 258, token: "6" });
    expect(await content()).toBe(`${"x".repeat(257)}y`);
  });

  it("is bound to a term: acts under its token, and not at all once it is over", async () => {
    let held = true;
    const assertHeld = (): void => {
      if (!held) throw new Error("over");
    };
    const acts = file.bind({ token: 5n, signal: new AbortController().signal, assertHeld });
    await acts.check();
    await acts.append("a");
    await acts.replace("b");
    expect(await file.read()).toEqual({ token: 5n, data: Buffer.from("b") });
    held = false;
    for (const act of [acts.check(), acts.append("c"), acts.replace("c")])
      await expect(act).rejects.toThrow("over");
    expect(await content()).toBe("b");
  });
});

describe("what lies about in the directory", () => {
  it("is not read if it has no number for a name", async () => {
    await file.append(5n, "x");
    for (const other of ["README", `${name(9)}0`, `x${name(9)}`, "9"])
      await writeFile(join(path, other), "?");
    expect(await content()).toBe("x");
  });

  it("is removed from the staging directory when it is an hour old, and not before", async () => {
    const clock = new VirtualClock({ wallMs: Date.UTC(2030, 0, 1) });
    await file.append(5n, "x");
    const staged = { young: 3_600_000, old: 3_600_001 };
    for (const [each, age] of Object.entries(staged)) {
      const left = join(path, "staging", each);
      await writeFile(left, "?");
      await utimes(left, new Date(clock.wall() - age), new Date(clock.wall() - age));
    }
    await new FencedFile({ path, clock }).append(5n, "y");
    expect(await readdir(join(path, "staging"))).toEqual(["young"]);
  });

  const good = { v: 1, token: "9", id: "x", parent: null, base: 1 };

  it("counts as a segment if its header is one", async () => {
    await file.append(5n, "x");
    await writeFile(place(2), `${JSON.stringify({ ...good, more: "is ignored" })}\ny`);
    expect(await file.read()).toEqual({ token: 9n, data: Buffer.from("xy") });
    await writeFile(place(3), `${JSON.stringify({ ...good, parent: "x", base: 3 })}\nz`);
    expect(await content()).toBe("z");
  });

  it.each([
    "null",
    "7",
    ...[
      { ...good, v: 2 },
      { ...good, token: "x" },
      { ...good, id: 7 },
      { ...good, parent: 7 },
      { ...good, base: "1" },
      { ...good, base: 0 },
      { ...good, base: 1.5 },
      { ...good, base: 3 },
      { ...good, more: "x".repeat(1_024) },
    ].map((each) => JSON.stringify(each)),
  ])("is a foreign segment if it is not: %.50s", async (line) => {
    await file.append(5n, "x");
    await writeFile(place(2), `${line}\n`);
    await expect(file.read()).rejects.toMatchObject({ code: "conflict" });
    await expect(file.append(10n, "y")).rejects.toMatchObject({ code: "conflict" });
  });
});

describe("a writer that was overtaken", () => {
  it("goes on behind whoever took its number", async () => {
    await file.append(5n, "a");
    const other = new FencedFile({ path });
    await Promise.all([file.append(5n, "b"), other.append(5n, "b")]);
    expect(await content()).toBe("abb");
  });

  it("counts if the next segment was built on its own", async () => {
    await file.append(5n, "a");
    after.link = async () => {
      after.link = async () => {};
      await new FencedFile({ path }).append(6n, "c");
    };
    await file.append(5n, "b");
    expect(await content()).toBe("abc");
    expect(await segments()).toEqual([1, 2, 3]);
  });

  it("does not count if its number had been used and removed: it is removed again, and refused", async () => {
    await file.append(5n, "a");
    // Stopped before its link, long enough for others to fill and remove the numbers.
    after.link = async (to) => {
      after.link = async () => {};
      const mine = await readFile(to);
      await rm(to);
      const newer = new FencedFile({ path });
      for (let i = 0; i < 20; i++) await newer.replace(7n, `${i}`);
      await writeFile(to, mine);
    };
    await expect(file.append(5n, "b")).rejects.toMatchObject({ token: 5n, highest: 7n });
    expect(await content()).toBe("19");
    expect(await segments()).not.toContain(2);
  });

  it("does not count if the next segment was built on another", async () => {
    await file.append(5n, "a");
    after.link = async (to) => {
      after.link = async () => {};
      const mine = await readFile(to);
      await rm(to);
      const newer = new FencedFile({ path });
      await newer.append(7n, "x");
      await newer.append(7n, "y");
      await rm(to);
      await writeFile(to, mine);
    };
    await expect(file.append(5n, "b")).rejects.toMatchObject({ token: 5n, highest: 7n });
    expect(await segments()).toEqual([1, 3]);
  });

  it("does not know whether it counted if its segment is gone", async () => {
    await file.append(5n, "a");
    after.link = (to) => rm(to);
    await expect(file.append(5n, "b")).rejects.toMatchObject({ code: "unavailable" });
    after.link = async () => {
      await rm(path, { recursive: true });
      await mkdir(path);
    };
    await expect(file.append(5n, "b")).rejects.toMatchObject({ code: "unavailable" });
  });
});
