/**
 * The interface between the file backend and the file system. The simulator
 * implements it with a directory listing that is *not* atomic, and so runs the
 * same backend code as production.
 *
 * Faults are thrown as Node throws them, with a `code` such as `ENOENT`; the
 * store turns them into errors of this library.
 */

/** A file that was read, and what tells it from any other (see {@link FileSystem.mark}). */
export interface FileRead {
  readonly data: Uint8Array;
  readonly mark: string;
}

/** What the file backend asks of a file system. */
export interface FileSystem {
  /**
   * Names in a directory, in no order. Not atomic: files created or removed
   * while it runs may or may not be listed, whatever else is. What is there from
   * beginning to end is listed; what is not there at all is not. ENOENT = throws.
   */
  list(directory: string): Promise<string[]>;
  /** Throws with code `conflict` if this is a symbolic link, or not a directory of ours. ENOENT = throws. */
  assertDirectory(path: string): Promise<void>;
  /**
   * First `limitBytes` of a regular file, never following a symbolic link and
   * never blocking on a FIFO. `null` = no such file. Anything that is not a
   * regular file of ours throws a `ConclaveError` with code `conflict`. It is
   * opened and then read: by then it may have lost its name and hold something
   * else, or half of it (see `rewrite`).
   */
  read(path: string, limitBytes: number): Promise<FileRead | null>;
  /**
   * What tells the file under this name from any other, and from itself with
   * another content. `null` = no such file.
   */
  mark(path: string): Promise<string | null>;
  /**
   * Writes a new file (fails if it exists) and returns its mark; `durable` = its
   * content is on the disk, not only in memory, before this resolves.
   */
  create(path: string, data: Uint8Array, durable: boolean): Promise<string>;
  /**
   * Writes over a file of ours, and returns its mark. Not atomic. `null` = this
   * cannot be used, and was not touched: it is not there, not a regular file of
   * ours, longer than `data`, or known under another name too.
   */
  rewrite(path: string, data: Uint8Array, durable: boolean): Promise<string | null>;
  /** Hard link: atomic, exclusive. `false` = `to` exists already. */
  link(from: string, to: string): Promise<boolean>;
  /** Gives a file another name, in the place of what bore that. `false` = `from` is not there. */
  rename(from: string, to: string): Promise<boolean>;
  /** Makes the names in a directory durable. */
  syncDirectory(directory: string): Promise<void>;
  /** Removes a file; no error if it is gone already. */
  remove(path: string): Promise<void>;
  /** Creates a private directory (0700) if it is not there, parents included. */
  makeDirectory(path: string): Promise<void>;
  /**
   * Calls `wake`, with the name that changed where that is known, when names in
   * the directory may have changed; until the signal aborts. Armed when the call
   * has returned its promise. A hint: it may miss, repeat, end early or throw.
   */
  watch(directory: string, wake: (name?: string) => void, signal: AbortSignal): Promise<void>;
}
