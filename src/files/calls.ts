/**
 * Calls to the file system as promises, over the callbacks of `node:fs`: those
 * of `node:fs/promises` cost twice as much, and make an object for every file
 * that is opened.
 */
import type { Stats } from "node:fs";
import { close, closeSync, fstat, fstatSync, fsync, open, write } from "node:fs";

type Done<T> = (error: Error | null, value?: T) => void;

/** Runs a call that reports to a callback. */
export function call<T>(start: (done: Done<T>) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    start((error, value) => {
      if (error === null || error === undefined) resolve(value as T);
      else reject(error);
    });
  });
}

/** How an open file is asked what it is, and closed. */
export interface OpenFiles {
  stat(file: number): Stats | Promise<Stats>;
  close(file: number): void | Promise<void>;
}

/** On a disk of this machine neither waits for the disk, and so neither can hang. */
export const localFiles: OpenFiles = { stat: (file) => fstatSync(file), close: closeSync };

/** A network file system may ask its server, and on closing sends what was written: that must not stop the event loop. */
export const anyFiles: OpenFiles = {
  stat: (file) => call<Stats>((done) => fstat(file, done)),
  close: (file) => call<void>((done) => close(file, done)),
};

/** How a file is opened. */
export interface Opening {
  readonly flags: number;
  readonly mode?: number;
  readonly files: OpenFiles;
}

/** Opens a file, hands it to `use` and closes it, whatever comes. */
export async function withFile<T>(
  path: string,
  { flags, mode, files }: Opening,
  use: (file: number) => Promise<T>,
): Promise<T> {
  const file = await call<number>((done) => open(path, flags, mode ?? 0, done));
  try {
    return await use(file);
  } finally {
    await files.close(file);
  }
}

/** Writes from the beginning of an open file; `durable`: it is on the disk before this resolves. */
export async function fill(file: number, data: Uint8Array, durable: boolean): Promise<void> {
  for (let at = 0; at < data.length;) {
    const from = at;
    at += await call<number>((done) => write(file, data, from, data.length - from, from, done));
  }
  if (durable) await sync(file);
}

export function sync(file: number): Promise<void> {
  return call<void>((done) => fsync(file, done));
}
