/**
 * What files that are numbered by hard links need of a file system: a file is
 * written under a temporary name and then linked under the next number, which
 * fails if that exists. So of all writers that want a number exactly one gets
 * it, without a lock that a stopped process could keep.
 */
import type { Stats } from "node:fs";
import { constants, link, unlink } from "node:fs";
import { ConclaveError } from "../kit/errors.js";
import { anyFiles, call, fill, sync, withFile } from "./calls.js";

// Some systems lack the last two: they are undefined there and count as 0.
const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_DIRECTORY } = constants;

const PRIVATE_FILE = 0o600;

/**
 * Kept of the older files. A directory listing is not atomic: one that meets
 * none of these took as long as sixteen writes.
 */
export const KEPT_NUMBERS = 16;

/** What a file system or platform answers that cannot sync directories at all. */
const NOT_SYNCABLE: readonly unknown[] = ["EINVAL", "ENOTSUP", "EOPNOTSUPP"];
const NOT_SYNCABLE_ON_WINDOWS: readonly unknown[] = ["EISDIR", "EPERM", "EACCES", "EBADF"];

/** Writes a new private file (fails if it exists); `durable`: its content is on the disk before this resolves. */
export async function createFile(
  path: string,
  data: Uint8Array,
  durable: boolean,
  files = anyFiles,
): Promise<Stats> {
  const opening = { flags: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: PRIVATE_FILE, files };
  return withFile(path, opening, async (file) => {
    try {
      await fill(file, data, durable);
      return await files.stat(file);
    } catch (error) {
      await removeFile(path).catch(() => {});
      throw error;
    }
  });
}

/** `false`: that name exists already, and nothing was done. */
export async function linkFile(from: string, to: string): Promise<boolean> {
  try {
    await call<void>((done) => link(from, to, done));
    return true;
  } catch (error) {
    const code = errnoOf(error);
    if (code === "EEXIST") return false;
    if (code !== "EPERM") throw error;
    throw new ConclaveError(
      "unsupported",
      `"${to}" could not be linked: this file system has no hard links; choose a directory on a local disk`,
      { cause: error },
    );
  }
}

/** Makes the names in a directory durable, where directories can be synced at all. */
export async function syncDirectory(path: string, files = anyFiles): Promise<void> {
  try {
    await withFile(path, { flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW, files }, sync);
  } catch (error) {
    const code = errnoOf(error);
    if (NOT_SYNCABLE.includes(code)) return;
    if (process.platform === "win32" && NOT_SYNCABLE_ON_WINDOWS.includes(code)) return;
    throw error;
  }
}

/** Removes a file; no error if it is gone already. */
export async function removeFile(path: string): Promise<void> {
  try {
    await call<void>((done) => unlink(path, done));
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}

/** The `code` of an error as the file system throws it. */
export function errnoOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
