/** The order of the steps of a write: what a crash of the machine leaves depends on it. */
import { basename, join } from "node:path";
import { expect, it, vi } from "vitest";
import { interposed } from "./interposed.js";
import { open, recordsOf, storeIn, tempDirectory } from "./support.js";

/** Steps that change the disk, as they begin. */
function recorder(room: string): { readonly steps: string[]; readonly fs: ReturnType<typeof interposed> } {
  const steps: string[] = [];
  const shelf = join(room, "elections");
  const named = (path: string): string => {
    if (path === shelf) return "shelf";
    if (path === recordsOf(room, "a")) return "folder";
    if (path.startsWith(join(room, "staging"))) return "staging";
    return basename(path);
  };
  const fs = interposed((step, path) => {
    if (!LOOKS.includes(step)) steps.push(`${step} ${named(path)}`);
  });
  return { steps, fs };
}

const LOOKS = ["list", "read", "mark", "assertDirectory"];

/** Old records are removed after the write has returned. */
async function untilTaken(
  steps: readonly string[],
  expected: readonly string[],
  why?: string,
): Promise<void> {
  await vi.waitFor(() => expect(steps, why).toEqual(expected));
}

it("a first record: its folder's name is on the disk before the record is, and that before anyone leads", async () => {
  const room = await tempDirectory();
  const { steps, fs } = recorder(room);
  await storeIn(room, { fs }).write("a", null, "one", open);
  await untilTaken(steps, [
    "makeDirectory shelf",
    "makeDirectory folder",
    "syncDirectory shelf",
    "makeDirectory staging",
    "create staging",
    "link first",
    "syncDirectory folder",
    "remove staging",
  ]);
});

it("a later record: linked, then synced, and only then is the draft removed", async () => {
  const room = await tempDirectory();
  const { steps, fs } = recorder(room);
  const store = storeIn(room, { fs });
  const first = await store.write("a", null, "one", open);
  await vi.waitFor(() => expect(steps.at(-1)).toBe("remove staging"));
  steps.length = 0;
  const second = await store.write("a", first!.version, "two", open);
  await untilTaken(steps, [
    "create staging",
    `link ${second!.version}`,
    "syncDirectory folder",
    "remove staging",
  ]);
});

it("the seventeenth: what is to be kept is on the disk before the oldest goes; the next to go becomes a draft", async () => {
  const room = await tempDirectory();
  const { steps, fs } = recorder(room);
  const store = storeIn(room, { fs, durability: () => "none" });
  let version = (await store.write("a", null, "0", open))!.version;
  const first = version;
  for (let i = 1; i < 17; i++) {
    await vi.waitFor(() => expect(steps.at(-1)).toBe("remove staging"));
    steps.length = 0;
    ({ version } = (await store.write("a", version, String(i), open))!);
  }
  await untilTaken(steps, [
    "create staging",
    `link ${version}`,
    "syncDirectory folder",
    "remove first",
    "remove staging",
  ]);
  for (let i = 1; i < 4; i++) {
    steps.length = 0;
    ({ version } = (await store.write("a", version, "x", open))!);
    const draft = i === 1 ? "create staging" : "rewrite staging";
    const expected = [draft, `link ${version}`, `rename ${first + BigInt(i)}`];
    await untilTaken(steps, expected, "it was on the disk already");
  }
});

it("when many are too old, they go from the oldest up", async () => {
  const room = await tempDirectory();
  let broken = true;
  const { steps, fs } = recorder(room);
  const store = storeIn(room, {
    fs: {
      ...fs,
      rename: (from, to) => (broken ? Promise.reject(new Error("EIO")) : fs.rename(from, to)),
    },
    durability: () => "none",
  });
  let version = (await store.write("a", null, "0", open))!.version;
  const first = version;
  for (let i = 1; i < 20; i++) ({ version } = (await store.write("a", version, String(i), open))!);
  await vi.waitFor(() => expect(steps.filter((step) => step === "remove staging")).toHaveLength(20));
  broken = false;
  steps.length = 0;
  await store.write("a", version, "x", open);
  const removals = (): string[] => steps.filter((step) => /^(rename|remove) (first|\d)/.test(step));
  const numbers = [2n, 3n, 4n].map((i) => `remove ${first + i}`);
  await vi.waitFor(() => expect(removals()).toEqual([`rename ${first + 1n}`, ...numbers]));
});
