/**
 * The real file system. Everything that is opened is opened without following
 * a symbolic link and without waiting for a FIFO, and then asked what it is:
 * names in a directory may have been planted.
 */
import type { BigIntStats, FSWatcher, Stats } from "node:fs";
import { constants, lstat, mkdir, read, readdir, rename, watch } from "node:fs";
import { basename } from "node:path";
import { ConclaveError } from "../../kit/errors.js";
import { onAbort } from "../../kit/wait.js";
import type { OpenFiles } from "../../files/calls.js";
import { anyFiles, call, fill, localFiles, withFile } from "../../files/calls.js";
import { createFile, errnoOf, linkFile, removeFile, syncDirectory } from "../../files/numbered-links.js";
import type { FileRead, FileSystem } from "./fs.js";

// Some systems lack the last three: they are undefined there and count as 0.
const { O_RDONLY, O_WRONLY, O_NOFOLLOW, O_NONBLOCK, O_NOATIME } = constants;

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
  readonly #files: OpenFiles;

  constructor(files: OpenFiles) {
    this.#files = files;
  }

  list(directory: string): Promise<string[]> {
    return call((done) => readdir(directory, done));
  }

  async assertDirectory(path: string): Promise<void> {
    demandDirectory(path, await statsOf(path));
  }

  async read(path: string, limitBytes: number): Promise<FileRead | null> {
    try {
      // Followers read a lot; none of it is worth a write of the access time.
      const flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME;
      return await withFile(path, { flags, files: this.#files }, async (file) => {
        const stats = await this.#files.stat(file);
        if (!stats.isFile()) throw notOurs(path, "is not a regular file");
        if (!isOwn(stats)) throw notOurs(path, "belongs to another user");
        return { data: await readUpTo(file, Math.min(limitBytes, stats.size)), mark: markOf(stats) };
      });
    } catch (error) {
      const code = errnoOf(error);
      if (code === "ENOENT") return null;
      if (code !== undefined && NOT_A_FILE.has(code))
        throw notOurs(path, `cannot be opened as a file (${code})`, error);
      throw error;
    }
  }

  async mark(path: string): Promise<string | null> {
    try {
      return markOf(await statsOf(path));
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return null;
      throw error;
    }
  }

  async create(path: string, data: Uint8Array, durable: boolean): Promise<string> {
    return markOf(await createFile(path, data, durable, this.#files));
  }

  async rewrite(path: string, data: Uint8Array, durable: boolean): Promise<string | null> {
    try {
      const flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK;
      return await withFile(path, { flags, files: this.#files }, async (file) => {
        const stats = await this.#files.stat(file);
        // A file with another name may be a record still, or somebody's file that was linked here to be destroyed.
        if (!stats.isFile() || !isOwn(stats) || stats.nlink !== 1 || stats.size > data.length) return null;
        await fill(file, data, durable);
        return markOf(await this.#files.stat(file));
      });
    } catch (error) {
      const code = errnoOf(error);
      if (code === "ENOENT" || (code !== undefined && NOT_A_FILE.has(code))) return null;
      throw error;
    }
  }

  link(from: string, to: string): Promise<boolean> {
    return linkFile(from, to);
  }

  async rename(from: string, to: string): Promise<boolean> {
    try {
      await call<void>((done) => rename(from, to, done));
      return true;
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return false;
      throw error;
    }
  }

  syncDirectory(directory: string): Promise<void> {
    return syncDirectory(directory, this.#files);
  }

  remove(path: string): Promise<void> {
    return removeFile(path);
  }

  async makeDirectory(path: string): Promise<void> {
    await call((done) => mkdir(path, { recursive: true, mode: PRIVATE_DIRECTORY }, done));
    demandDirectory(path, await statsOf(path));
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

/** Where the files may be those of a network. */
export const nodeFileSystem: FileSystem = new NodeFileSystem(anyFiles);
/** Where they are certainly on a disk of this machine. */
export const localFileSystem: FileSystem = new NodeFileSystem(localFiles);

/** Owned by the user this process acts as. Where there are no user ids, everything is. */
export function isOwn(stats: Stats | BigIntStats): boolean {
  return process.geteuid === undefined || Number(stats.uid) === process.geteuid();
}

function statsOf(path: string): Promise<Stats> {
  return call((done) => lstat(path, done));
}

/** A rename or a link changes none of it, a write does. */
function markOf({ ino, size, mtimeMs }: Stats): string {
  return `${ino}/${size}/${mtimeMs}`;
}

async function readUpTo(file: number, limitBytes: number): Promise<Uint8Array> {
  const buffer = Buffer.allocUnsafe(limitBytes);
  let length = 0;
  while (length < limitBytes) {
    const at = length;
    const bytes = await call<number>((done) => read(file, buffer, at, limitBytes - at, at, done));
    if (bytes === 0) break;
    length += bytes;
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
