/**
 * The real file system. Everything that is opened is opened without following
 * a symbolic link and without waiting for a FIFO, and then asked what it is:
 * names in a directory may have been planted.
 */
import type { BigIntStats, FSWatcher, Stats } from "node:fs";
import { constants, watch } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { lstat, mkdir, open, readdir } from "node:fs/promises";
import { basename } from "node:path";
import { ConclaveError } from "../../kit/errors.js";
import { onAbort } from "../../kit/wait.js";
import { createFile, errnoOf, linkFile, removeFile, syncDirectory } from "../../files/numbered-links.js";
import type { FileSystem } from "./fs.js";

// Some systems lack the last three: they are undefined there and count as 0.
const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOATIME } = constants;

const PRIVATE_DIRECTORY = 0o700;

/** What opening says of something that is there but not a plain file of ours. */
const NOT_A_FILE = new Set([
  "ELOOP",
  "EMLINK",
  "EISDIR",
  "ENXIO",
  "EACCES",
  "EPERM",
  "ENOTDIR",
  "ENODEV",
  "EOPNOTSUPP",
]);
class NodeFileSystem implements FileSystem {
  async list(directory: string): Promise<string[]> {
    demandDirectory(directory, await lstat(directory));
    return readdir(directory);
  }

  async read(path: string, limitBytes: number): Promise<Uint8Array | null> {
    let file: FileHandle;
    try {
      // Followers read a lot; none of it is worth a write of the access time.
      file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME);
    } catch (error) {
      const code = errnoOf(error);
      if (code === "ENOENT") return null;
      if (code !== undefined && NOT_A_FILE.has(code))
        throw notOurs(path, `cannot be opened as a file (${code})`, error);
      throw error;
    }
    try {
      const stats = await file.stat();
      if (!stats.isFile()) throw notOurs(path, "is not a regular file");
      if (!isOwn(stats)) throw notOurs(path, "belongs to another user");
      return await readUpTo(file, Math.min(limitBytes, stats.size));
    } finally {
      await file.close();
    }
  }

  create(path: string, data: Uint8Array, durable: boolean): Promise<void> {
    return createFile(path, data, durable);
  }

  link(from: string, to: string): Promise<boolean> {
    return linkFile(from, to);
  }

  syncDirectory(directory: string): Promise<void> {
    return syncDirectory(directory);
  }

  remove(path: string): Promise<void> {
    return removeFile(path);
  }

  async makeDirectory(path: string): Promise<void> {
    await mkdir(path, { recursive: true, mode: PRIVATE_DIRECTORY });
    demandDirectory(path, await lstat(path));
  }

  async watch(directory: string, wake: (name?: string) => void, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const self = basename(directory);
    // Not persistent: a hint is no reason to keep a process alive.
    const watcher: FSWatcher = watch(directory, { persistent: false });
    await new Promise<void>((resolve) => {
      const end = (): void => {
        unlinkAbort();
        watcher.close();
        resolve();
      };
      watcher.on("change", (_, name) => {
        const changed = typeof name === "string" ? name : undefined;
        wake(changed);
        // The directory itself was moved or removed: this watch will not see its successor.
        if (changed === self) end();
      });
      watcher.on("error", end);
      const unlinkAbort = onAbort(signal, () => {
        watcher.close();
        resolve();
      });
    });
  }
}

export const nodeFileSystem: FileSystem = new NodeFileSystem();

/** Owned by the user this process acts as. Where there are no user ids, everything is. */
export function isOwn(stats: Stats | BigIntStats): boolean {
  return process.geteuid === undefined || Number(stats.uid) === process.geteuid();
}

async function readUpTo(file: FileHandle, limitBytes: number): Promise<Uint8Array> {
  const buffer = Buffer.alloc(limitBytes);
  let length = 0;
  while (length < limitBytes) {
    const { bytesRead } = await file.read(buffer, length, limitBytes - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}

function demandDirectory(path: string, stats: Stats): void {
  if (stats.isSymbolicLink()) throw notOurs(path, "is a symbolic link");
  if (!stats.isDirectory()) throw notOurs(path, "is not a directory");
  if (!isOwn(stats)) throw notOurs(path, "belongs to another user");
}

function notOurs(path: string, why: string, cause?: unknown): ConclaveError {
  return new ConclaveError(
    "conflict",
    `"${path}" ${why}: it was not made by conclave; remove it or choose another directory`,
    { cause },
  );
}
