/**
 * The directory of the records, looked at again at every call. A cleaner may
 * remove it and another user make it anew, or a mount may cover it: what is then
 * found under its path was not checked when the backend was opened.
 */
import { ConclaveError } from "../../kit/errors.js";
import type { DirectoryOptions, OpenedDirectory } from "./directory.js";
import { lookAgain, openChecked } from "./directory.js";

/** Where a store keeps its records. */
export interface GuardedRoot {
  /** The directory, owner and mode checked now. Made if it is not there. */
  open(): Promise<OpenedDirectory>;
  /** After a write: throws unless the path still leads to the directory that was opened for it. */
  assertSame(opened: OpenedDirectory): Promise<void>;
}

export class GuardedDirectory implements GuardedRoot {
  readonly #options: DirectoryOptions;
  #opened: Promise<OpenedDirectory> | undefined;

  constructor(options: DirectoryOptions) {
    this.#options = options;
  }

  async open(): Promise<OpenedDirectory> {
    const opened = await this.#first();
    const found = await lookAgain(opened.path);
    if (found?.identity === opened.identity) return found;
    // Another directory, or none: everything is checked anew, its file system too.
    this.#opened = undefined;
    return this.#first();
  }

  async assertSame(opened: OpenedDirectory): Promise<void> {
    const found = await lookAgain(opened.path);
    if (found?.identity === opened.identity) return;
    throw new ConclaveError(
      "unavailable",
      `the directory "${opened.path}" was replaced while a record was written; whether it counts is not known`,
    );
  }

  /** A refusal is not remembered, since it can be mended. */
  #first(): Promise<OpenedDirectory> {
    this.#opened ??= openChecked(this.#options).catch((error: unknown) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }
}

/** A directory that is used as it is: its keeper vouches for it. */
export function trusted(path: string): GuardedRoot {
  const opened = { path, identity: path };
  return { open: () => Promise.resolve(opened), assertSame: () => Promise.resolve() };
}
