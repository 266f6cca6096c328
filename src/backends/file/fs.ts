/**
 * The narrow door between the file room and the file system. The simulator
 * stands behind the same door with a directory listing that is *not* atomic, so
 * what is proved there is the code that runs here.
 */

export interface FileSystem {
  /**
   * Names in a directory, in no order. Not atomic: files created or removed
   * while it runs may or may not be listed, whatever else is. ENOENT = throws.
   */
  list(directory: string): Promise<string[]>;
  /**
   * First `limitBytes` of a regular file, never following a symbolic link and
   * never blocking on a FIFO. `null` = no such file.
   */
  read(path: string, limitBytes: number): Promise<Uint8Array | null>;
  /** Writes a new file (fails if it exists) and makes it durable before it resolves. */
  create(path: string, data: Uint8Array): Promise<void>;
  /** Hard link: atomic, exclusive. `false` = `to` exists already. */
  link(from: string, to: string): Promise<boolean>;
  /** Makes the names in a directory durable. */
  syncDirectory(directory: string): Promise<void>;
  /** Removes a file; no error if it is gone already. */
  remove(path: string): Promise<void>;
  /** Creates a private directory (0700) if it is not there, parents included. */
  makeDirectory(path: string): Promise<void>;
  /** Calls `wake` when names in the directory may have changed, until the signal aborts. A hint. */
  watch(directory: string, wake: () => void, signal: AbortSignal): Promise<void>;
}
