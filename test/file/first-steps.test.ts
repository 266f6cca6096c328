/** The order of the steps of a write: what a crash of the machine leaves depends on it. */
import { basename, join } from "node:path";
import { expect, it } from "vitest";
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
    if (step !== "list" && step !== "read") steps.push(`${step} ${named(path)}`);
  });
  return { steps, fs };
}

it("a first record: its folder's name is on the disk before the record is, and that before anyone leads", async () => {
  const room = await tempDirectory();
  const { steps, fs } = recorder(room);
  await storeIn(room, { fs }).write("a", null, "one", open);
  expect(steps).toEqual([
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
  steps.length = 0;
  const second = await store.write("a", first!.version, "two", open);
  expect(steps).toEqual([
    "create staging",
    `link ${second!.version}`,
    "syncDirectory folder",
    "remove staging",
  ]);
});

it("the seventeenth: what is to be kept is on the disk before the oldest goes, from the oldest up", async () => {
  const room = await tempDirectory();
  const { steps, fs } = recorder(room);
  const store = storeIn(room, { fs, durability: () => "none" });
  let version = (await store.write("a", null, "0", open))!.version;
  const first = version;
  for (let i = 1; i < 17; i++) {
    steps.length = 0;
    ({ version } = (await store.write("a", version, String(i), open))!);
  }
  expect(steps).toEqual([
    "create staging",
    `link ${version}`,
    "syncDirectory folder",
    "remove first",
    "remove staging",
  ]);
  steps.length = 0;
  ({ version } = (await store.write("a", version, "x", open))!);
  expect(steps, "it was on the disk already").toEqual([
    "create staging",
    `link ${version}`,
    `remove ${first + 1n}`,
    "remove staging",
  ]);
});
