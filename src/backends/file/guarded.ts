/**
 * The directory of the records, looked at again at every call. A cleaner may
 * remove it and another user make it anew, or a mount may cover it: what is then
 * found under its path was not checked when the backend was opened.
 *
 * The directory is kept open meanwhile. So its inode number is not given to
 * another one, and the path to it stays in memory: a look at it on a local disk
 * asks no disk, and is made without handing it to a thread (ADR 061).
 */
import { closeSync, constants, fstatSync, open } from "node:fs";
import { ConclaveError } from "../../kit/errors.js";
import { call } from "../../files/calls.js";
import type { DirectoryOptions, OpenedDirectory } from "./directory.js";
import { identityOf, isLocal, lookAgain, lookAgainAtOnce, openChecked } from "./directory.js";

// Undefined, and so 0, where a system lacks them.
const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;

/** Where a store keeps its records. */
export interface GuardedRoot {
  /** The directory, owner and mode checked now. Made if it is not there. The same object for as long as it is the same. */
  open(): Promise<OpenedDirectory>;
  /** After a write: throws unless the path still leads to the directory that was opened for it. */
  assertSame(opened: OpenedDirectory): Promise<void>;
  close(): Promise<void>;
}

interface Held {
  readonly opened: OpenedDirectory;
  readonly handle: number;
}

export class GuardedDirectory implements GuardedRoot {
  readonly #options: DirectoryOptions;
  #held: Promise<Held> | undefined;

  constructor(options: DirectoryOptions) {
    this.#options = options;
  }

  async open(): Promise<OpenedDirectory> {
    const { opened } = await this.#first();
    if (await this.#isSame(opened)) return opened;
    // Another directory, or none: everything is checked anew, its file system too.
    await this.close();
    return (await this.#first()).opened;
  }

  async assertSame(opened: OpenedDirectory): Promise<void> {
    if (await this.#isSame(opened)) return;
    throw new ConclaveError(
      "unavailable",
      `the directory "${opened.path}" was replaced while a record was written; whether it counts is not known`,
    );
  }

  async close(): Promise<void> {
    const held = this.#held;
    this.#held = undefined;
    const handle = await held?.then(
      ({ handle: opened }) => opened,
      () => undefined,
    );
    if (handle !== undefined) closeSync(handle);
  }

  /** Throws if it is not safe any more. */
  async #isSame({ path, identity }: OpenedDirectory): Promise<boolean> {
    try {
      const found = isLocal(this.#options) ? lookAgainAtOnce(path) : await lookAgain(path);
      return found?.identity === identity;
    } catch (error) {
      // What is mended is checked anew, and what lies in it.
      await this.close();
      throw error;
    }
  }

  /** A refusal is not remembered, since it can be mended. */
  #first(): Promise<Held> {
    this.#held ??= this.#hold().catch((error: unknown) => {
      this.#held = undefined;
      throw error;
    });
    return this.#held;
  }

  async #hold(): Promise<Held> {
    const opened = await openChecked(this.#options);
    const flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
    const handle = await call<number>((done) => open(opened.path, flags, 0, done));
    if (identityOf(fstatSync(handle, { bigint: true })) === opened.identity) return { opened, handle };
    closeSync(handle);
    throw new ConclaveError("unavailable", `the directory "${opened.path}" was replaced while it was opened`);
  }
}

/** A directory that is used as it is: its keeper vouches for it. */
export function trusted(path: string): GuardedRoot {
  const opened = { path, identity: path };
  return {
    open: () => Promise.resolve(opened),
    assertSame: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}
