/**
 * Where the records live. The default depends on the user id alone: a login
 * shell, a service and a cron job of one user have different environments and
 * must still meet in one election.
 */
import type { Stats } from "node:fs";
import { lstat, mkdir, statfs } from "node:fs/promises";
import { userInfo } from "node:os";
import { dirname, join, resolve } from "node:path";
import { ConclaveError } from "../../core/errors.js";
import { explain } from "./faults.js";
import { errnoOf } from "./fs.js";
import { isOwn } from "./node-fs.js";

export interface DirectoryOptions {
  /** Default: `.local/state/conclave` in the home directory that the password database names. */
  readonly directory?: string | undefined;
  /** Network file systems are refused: their links, listings and caches break the promises of this room. */
  readonly allowNetworkFs?: boolean | undefined;
}

const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;
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

/**
 * Makes the directory if it is not there, sees that it is safe, and says where
 * the records really go: in a shared sticky directory such as /tmp that is a
 * private one inside. Refuses with a reason.
 */
export async function openDirectory(options: DirectoryOptions = {}): Promise<string> {
  const directory = resolve(options.directory ?? defaultDirectory());
  return explain(`opening the directory "${directory}"`, new AbortController().signal, async () => {
    if (options.allowNetworkFs !== true) await demandLocal(directory);
    const stats = await made(directory);
    if (stats.isSymbolicLink())
      throw refused(
        `"${directory}" is a symbolic link, which others may be able to turn elsewhere: name its target`,
      );
    if (!stats.isDirectory()) throw refused(`"${directory}" is not a directory: name another`);
    if ((stats.mode & STICKY) !== 0 && (stats.mode & WRITABLE_BY_OTHERS) !== 0)
      return privateInside(directory);
    if (!isOwn(stats))
      throw refused(`"${directory}" belongs to user ${stats.uid}: name a directory of your own`);
    demandGuarded(directory, stats);
    return directory;
  });
}

/** In a directory that everyone writes to, only what is ours, and ours alone, can be trusted. */
async function privateInside(shared: string): Promise<string> {
  const inside = join(shared, `conclave-${process.geteuid?.() ?? "user"}`);
  const stats = await made(inside);
  if (stats.isSymbolicLink() || !stats.isDirectory())
    throw refused(
      `"${inside}" is not a directory: someone put it there; remove it or name another directory`,
    );
  if (!isOwn(stats))
    throw refused(`"${inside}" belongs to user ${stats.uid}, who put it in our way: name another directory`);
  demandGuarded(inside, stats);
  return inside;
}

function demandGuarded(directory: string, stats: Stats): void {
  if (process.platform === "win32" || (stats.mode & WRITABLE_BY_OTHERS) === 0) return;
  const mode = (stats.mode & 0o7777).toString(8);
  throw refused(`"${directory}" can be written by others (mode ${mode}): chmod 700 it, or name another`);
}

/** The directory as it is, made if it was not there. Never follows a link in the last place. */
async function made(directory: string): Promise<Stats> {
  try {
    return await lstat(directory);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
  await makeAll(directory);
  return lstat(directory);
}

/**
 * Not `recursive: true`: where a file system answers ENOENT to every mkdir
 * (/proc does) that option tries for ever in a thread that nothing can stop.
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

/** Asks the nearest directory that exists, so that nothing is made where it will not be used. */
async function demandLocal(directory: string): Promise<void> {
  if (process.platform !== "linux") return; // the numbers mean nothing elsewhere
  for (let path = directory; ; path = dirname(path)) {
    try {
      const kind = NETWORK.get((await statfs(path)).type >>> 0);
      if (kind === undefined) return;
      throw refused(
        `"${directory}" is on ${kind}, a network file system, where two machines can both believe they lead: ` +
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
