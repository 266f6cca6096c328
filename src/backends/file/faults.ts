/** What the file system threw, in the words of this library. */
import type { ErrorCode } from "../../kit/errors.js";
import { ConclaveError, describe, isConclaveError } from "../../kit/errors.js";
import { untilAborted } from "../../kit/wait.js";
import { errnoOf } from "../../files/numbered-links.js";

const MEANING: Record<string, readonly [ErrorCode, string]> = {
  EACCES: ["forbidden", "check the owner and the mode of the directory"],
  EPERM: ["forbidden", "check the owner and the mode of the directory"],
  EROFS: ["forbidden", "the file system is mounted read-only: choose another directory"],
  ENOTDIR: ["conflict", "a component of the path is not a directory: remove it or choose another directory"],
  ELOOP: ["conflict", "the path contains a symbolic link: remove it or choose another directory"],
  ENAMETOOLONG: ["unsupported", "the path is too long: choose a shorter directory"],
  EXDEV: ["unsupported", "the directory spans two file systems: do not mount anything inside it"],
  ENOTSUP: ["unsupported", "this file system has no hard links: choose a directory on a local disk"],
  EOPNOTSUPP: ["unsupported", "this file system has no hard links: choose a directory on a local disk"],
  ENOSYS: ["unsupported", "this file system has no hard links: choose a directory on a local disk"],
  ENOSPC: ["unavailable", "the disk is full"],
  EDQUOT: ["unavailable", "the disk quota is used up"],
  EMFILE: ["unavailable", "this process has too many files open"],
  ENFILE: ["unavailable", "this machine has too many files open"],
  ENOENT: ["unavailable", "the directory was removed meanwhile; trying again creates it anew"],
};

/**
 * Runs `call`; faults of the file system become errors that say what to do. An
 * abort stays what it is, and ends the waiting even if the disk hangs: Node
 * cannot take a file operation back, so what `call` does later is unknown.
 */
export async function explain<T>(what: string, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
  try {
    return await untilAborted(signal, call());
  } catch (error) {
    if (isConclaveError(error) || (signal.aborted && error === signal.reason)) throw error;
    const [code, hint] = MEANING[errnoOf(error) ?? ""] ?? ["unavailable", "try again"];
    throw new ConclaveError(code, `${what} failed: ${describe(error)} (${hint})`, { cause: error });
  }
}
