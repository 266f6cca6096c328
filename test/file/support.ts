import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import { encodeKey } from "../../src/backends/file/names.js";
import { nodeFileSystem } from "../../src/backends/file/node-fs.js";
import type { FileStoreOptions } from "../../src/backends/file/store.js";
import { FileStore } from "../../src/backends/file/store.js";
import { systemClock } from "../../src/kit/clock.js";

const rooms: string[] = [];

afterEach(async () => {
  // Candidates that are closed after this hook may still write: then it is tried again.
  for (const root of rooms.splice(0))
    await rm(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
});

/** A directory of its own, gone after the test. */
export async function tempDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "conclave-test-"));
  rooms.push(directory);
  return directory;
}

export const never = new AbortController().signal;
export const open = { signal: never };

export function storeIn(root: string, options: Partial<FileStoreOptions> = {}): FileStore {
  return new FileStore({ fs: nodeFileSystem, clock: systemClock, root, ...options });
}

export function recordsOf(root: string, key: string, subdirectory = "elections"): string {
  return join(root, subdirectory, encodeKey(key));
}

/** Every path below a directory. */
export async function tree(directory: string): Promise<string[]> {
  return (await readdir(directory, { recursive: true })).sort();
}

/** How often a test with a long form goes round: CONCLAVE_ROUNDS, or the long form with CONCLAVE_LONG. */
export function rounds(short: number, long: number): number {
  const given = Number(process.env["CONCLAVE_ROUNDS"]);
  if (Number.isInteger(given) && given > 0) return given;
  return process.env["CONCLAVE_LONG"] ? long : short;
}
