/**
 * Where the records live. The default depends on the user id alone: a login
 * shell, a service and a cron job of one user have different environments and
 * must still meet in one election.
 */
import type { BigIntStats } from "node:fs";
import { lstatSync } from "node:fs";
import { lstat, mkdir, statfs } from "node:fs/promises";
import { userInfo } from "node:os";
import { dirname, join, resolve } from "node:path";
import { ConclaveError } from "../../kit/errors.js";
import { explain } from "./faults.js";
import { errnoOf } from "../../files/numbered-links.js";
import { isOwn } from "./node-fs.js";

/** Which directory, and what it may be. */
export interface DirectoryOptions {
  /** Default: `.local/state/conclave` in the home directory that the password database names. */
  readonly directory?: string | undefined;
  /** Network file systems are refused: their links, listings and caches break the guarantees of this backend. */
  readonly allowNetworkFs?: boolean | undefined;
}

const STICKY = 0o1000n;
const WRITABLE_BY_OTHERS = 0o022n;
const PRIVATE = 0o700;

/** File systems whose other end may be another machine, by the type number Linux gives (statfs(2)). */
const NETWORK: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB2"],
  [0x65735546, "FUSE"],
  [0x01021997, "9P"],
  [0x00c36400, "Ceph"],
  [0x5346414f, "AFS"],
  [0x6b414653, "AFS"],
  [0x73757245, "Coda"],
  [0x564c, "NCP"],
  [0x0bd00bd0, "Lustre"],
  [0x47504653, "GPFS"],
  [0x19830326, "BeeGFS"],
  [0x20030528, "OrangeFS"],
  [0x01161970, "GFS2"],
  [0x7461636f, "OCFS2"],
  [0x786f4256, "VirtualBox shared folder"],
]);

/** The directory used when none is given. */
export function defaultDirectory(): string {
  try {
    // From the password database, not from $HOME.
    return join(userInfo().homedir, ".local", "state", "conclave");
  } catch (error) {
    throw refused("this user has no home directory in the password database: name a directory", error);
  }
}

/** A directory that was found safe, and which one it was: a path can lead to another one later. */
export interface OpenedDirectory {
  readonly path: string;
  readonly identity: string;
}

/**
 * Makes the directory if it is not there, sees that it is safe, and says where
 * the records really go: in a shared sticky directory such as /tmp that is a
 * private one inside. Refuses with a reason.
 */
export async function openDirectory(options: DirectoryOptions = {}): Promise<string> {
  return (await openChecked(options)).path;
}

export async function openChecked(options: DirectoryOptions): Promise<OpenedDirectory> {
  const directory = resolve(options.directory ?? defaultDirectory());
  return explain(`opening the directory "${directory}"`, new AbortController().signal, async () => {
    if (options.allowNetworkFs !== true) await demandLocal(directory);
    const stats = await made(directory);
    if (stats.isSymbolicLink())
      throw refused(
        `"${directory}" is a symbolic link, which others may be able to turn elsewhere: name its target`,
      );
    if (!stats.isDirectory()) throw refused(`"${directory}" is not a directory: name another`);
    if ((stats.mode & STICKY) !== 0n && (stats.mode & WRITABLE_BY_OTHERS) !== 0n)
      return privateInside(directory);
    return safe(directory, stats, "name a directory of your own");
  });
}

/** The directory at this path now, if it is safe to use; `null` = there is none. */
export async function lookAgain(path: string): Promise<OpenedDirectory | null> {
  try {
    return stillSafe(path, await lstat(path, { bigint: true }));
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw error;
  }
}

/** The same without waiting: for a directory of a local disk that is held open. */
export function lookAgainAtOnce(path: string): OpenedDirectory | null {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? null : stillSafe(path, stats);
}

function stillSafe(path: string, stats: BigIntStats): OpenedDirectory {
  if (!stats.isDirectory()) throw refused(`"${path}" is not a directory any more: someone replaced it`);
  return safe(path, stats, "someone replaced the directory: remove it or name another");
}

/** What no other directory has while this one is there. */
export function identityOf({ dev, ino }: BigIntStats): string {
  return `${dev}/${ino}`;
}

/** In a directory that everyone writes to, only what is ours, and ours alone, can be trusted. */
async function privateInside(shared: string): Promise<OpenedDirectory> {
  const inside = join(shared, `conclave-${process.geteuid?.() ?? "user"}`);
  const stats = await made(inside);
  if (stats.isSymbolicLink() || !stats.isDirectory())
    throw refused(
      `"${inside}" is not a directory: someone put it there; remove it or name another directory`,
    );
  return safe(inside, stats, "who created it: name another directory");
}

function safe(path: string, stats: BigIntStats, advice: string): OpenedDirectory {
  if (!isOwn(stats)) throw refused(`"${path}" belongs to user ${stats.uid}: ${advice}`);
  if (process.platform !== "win32" && (stats.mode & WRITABLE_BY_OTHERS) !== 0n) {
    const mode = (stats.mode & 0o7777n).toString(8);
    throw refused(`"${path}" can be written by others (mode ${mode}): chmod 700 it, or name another`);
  }
  return { path, identity: identityOf(stats) };
}

/** The directory as it is, made if it was not there. Never follows a link in the last place. */
async function made(directory: string): Promise<BigIntStats> {
  try {
    return await lstat(directory, { bigint: true });
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
  await makeAll(directory);
  return lstat(directory, { bigint: true });
}

/**
 * Not `recursive: true`: where a file system answers ENOENT to every mkdir
 * (/proc does) that option tries forever in a thread that nothing can stop.
 */
async function makeAll(directory: string): Promise<void> {
  try {
    await mkdir(directory, { mode: PRIVATE });
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === "EEXIST") return;
    const parent = dirname(directory);
    if (errno !== "ENOENT" || parent === directory) throw error;
    await makeAll(parent);
    await mkdir(directory, { mode: PRIVATE }).catch((second: unknown) => {
      if (errnoOf(second) !== "EEXIST") throw second;
    });
  }
}

/** Whether a directory that was opened is certainly on a disk of this machine: elsewhere the kind cannot be told. */
export function isLocal({ allowNetworkFs }: DirectoryOptions): boolean {
  return process.platform === "linux" && allowNetworkFs !== true;
}

/** Asks the nearest directory that exists, so that nothing is made where it will not be used. */
async function demandLocal(directory: string): Promise<void> {
  if (process.platform !== "linux") return; // the numbers mean nothing elsewhere
  for (let path = directory; ; path = dirname(path)) {
    try {
      const kind = NETWORK.get((await statfs(path)).type >>> 0);
      if (kind === undefined) return;
      throw refused(
        `"${directory}" is on ${kind}, a network file system, where two machines could both lead: ` +
          "choose a local disk or a real store; `allowNetworkFs` overrides this",
      );
    } catch (error) {
      if (errnoOf(error) !== "ENOENT" || path === dirname(path)) throw error;
    }
  }
}

function refused(reason: string, cause?: unknown): ConclaveError {
  return new ConclaveError("unsupported", reason, { cause });
}
