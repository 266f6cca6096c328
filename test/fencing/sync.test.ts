/** "On disk when it resolves": a disk that cannot say so makes the call reject. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FencedFile } from "../../src/fencing/index.js";

/** What syncing a directory fails with; files are synced as ever. */
const fault = vi.hoisted(() => ({ code: "" }));

vi.mock(import("node:fs"), async (original) => {
  const fs = await original();
  const fsync: typeof fs.fsync = Object.assign(
    (file: number, done: (error: NodeJS.ErrnoException | null) => void): void => {
      if (fault.code === "" || !fs.fstatSync(file).isDirectory()) return fs.fsync(file, done);
      done(Object.assign(new Error(`${fault.code}: sync`), { code: fault.code }));
    },
    fs.fsync,
  );
  return { ...fs, fsync };
});

let parent = "";
beforeEach(async () => {
  fault.code = "";
  parent = await mkdtemp(join(tmpdir(), "conclave-fenced-sync-"));
});
afterEach(async () => {
  await rm(parent, { recursive: true, force: true });
});

test("a directory that cannot be synced: append, replace and check reject", async () => {
  const file = new FencedFile({ path: join(parent, "journal") });
  await file.append(7n, "a");
  fault.code = "EIO";
  const unknown = { code: "unavailable", message: expect.stringContaining("EIO") };
  await expect(file.append(7n, "b")).rejects.toMatchObject(unknown);
  await expect(file.replace(7n, "c")).rejects.toMatchObject(unknown);
  await expect(file.check(8n)).rejects.toMatchObject(unknown);
  fault.code = "";
  await file.append(8n, "d");
  expect((await file.read())?.data.toString()).toBe("cd");
});

test("nor is a new file begun whose own name may be lost", async () => {
  fault.code = "EIO";
  const file = new FencedFile({ path: join(parent, "journal") });
  await expect(file.append(7n, "a")).rejects.toMatchObject({ code: "unavailable" });
  fault.code = "";
  await file.append(7n, "a");
  expect((await file.read())?.data.toString()).toBe("a");
});

test("a file system that does not sync directories is none that failed to", async () => {
  fault.code = "EINVAL";
  const file = new FencedFile({ path: join(parent, "journal") });
  await file.append(7n, "a");
  expect((await file.read())?.data.toString()).toBe("a");
});
