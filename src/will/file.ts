/**
 * Wills as files: in a directory of this user's own, readable by nobody else. A
 * directory or a file that others could have written is refused.
 */
import { constants } from "node:fs";
import { lstat, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConclaveError } from "../kit/errors.js";
import { decodeWill, encodeWill, type Will } from "./document.js";

/** Ten thousand leaderships, and some. */
const LARGEST_WILL = 16 * 1024 * 1024;
const OTHERS = 0o077;

/** `$XDG_RUNTIME_DIR/conclave-wills`, else a directory of this user in the temporary directory. */
export function willDirectory(): string {
  const runtime = process.env["XDG_RUNTIME_DIR"];
  return runtime ? join(runtime, "conclave-wills") : join(tmpdir(), `conclave-wills-${ownUid()}`);
}

/** The directory, made if it is not there. */
export async function openWillDirectory(): Promise<string> {
  const directory = willDirectory();
  await mkdir(directory, { mode: 0o700 }).catch((error: unknown) => {
    if (!isCode(error, "EEXIST")) throw error;
  });
  const stat = await lstat(directory);
  if (!stat.isDirectory() || stat.uid !== ownUid() || (stat.mode & OTHERS) !== 0)
    throw refused(directory, "must be a directory of this user that nobody else may enter (mode 0700)");
  return directory;
}

/** Replaces the will at once: a reader sees the old one or the new one. */
export async function writeWill(path: string, will: Will): Promise<void> {
  const temporary = `${path}.new`;
  await rm(temporary, { force: true });
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const file = await open(temporary, flags, 0o600);
  try {
    await file.chmod(0o600); // whatever the umask says
    await file.writeFile(encodeWill(will));
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}

/** Throws if others could have written or read it, or if it is no will. */
export async function readWill(path: string): Promise<Will> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = await file.stat();
    if (!stat.isFile() || stat.uid !== ownUid() || (stat.mode & OTHERS) !== 0)
      throw refused(path, "must be a file of this user that nobody else may read or write (mode 0600)");
    if (stat.size > LARGEST_WILL) throw refused(path, "is too large for a will");
    const will = decodeWill(await file.readFile("utf8"));
    if (will === null) throw refused(path, "is no will that this release can read");
    return will;
  } finally {
    await file.close();
  }
}

export async function removeWill(path: string): Promise<void> {
  await Promise.all([path, `${path}.new`].map((each) => rm(each, { force: true })));
}

/** Paths of the wills in this user's directory; none if there is no directory. */
export async function listWills(): Promise<string[]> {
  const directory = willDirectory();
  try {
    const names = await readdir(directory);
    return names.filter((name) => /^[0-9]+-[0-9a-f]+\.json$/.test(name)).map((name) => join(directory, name));
  } catch (error) {
    if (isCode(error, "ENOENT")) return [];
    throw error;
  }
}

function ownUid(): number {
  return process.getuid?.() ?? -1;
}

function refused(path: string, why: string): ConclaveError {
  return new ConclaveError("forbidden", `${path} ${why}; no leadership is given back by it`);
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
