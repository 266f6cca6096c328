/**
 * The journal's file: `journal` in a directory of its own. Two processes on one
 * directory would forget each other's votes. So a process that starts puts a new
 * file in place and then looks whether the old one has grown since it was read;
 * and whoever answers looks before whether its file is still the one in place.
 * Of two processes at least one sees the other before it answers anybody.
 */
import type { FileHandle } from "node:fs/promises";
import { mkdir, open, readdir, rename, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { ConclaveError } from "../../kit/errors.js";
import { errnoOf, syncDirectory } from "../../files/numbered-links.js";
import type { JournalDisk } from "./journal.js";

const PRIVATE = 0o600;
const DRAFT = /^journal\..*new$/;

/** The file that this process writes to, and by what it is known. */
interface InPlace {
  readonly handle: FileHandle;
  readonly dev: bigint;
  readonly ino: bigint;
}

export class NodeJournalDisk implements JournalDisk {
  readonly #directory: string;
  readonly #path: string;
  readonly #draft: string;
  #file: InPlace | undefined;
  /** What was found at the start, and how long it was then. */
  #found: { readonly file: FileHandle; readonly bytes: number } | undefined;

  /** `draft`: what a file is called until it is put in place; another name in each process. */
  constructor(directory: string, draft: string) {
    this.#directory = directory;
    this.#path = join(directory, "journal");
    this.#draft = join(directory, draft);
  }

  async load(): Promise<Uint8Array | null> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    try {
      for (;;) {
        const file = await open(this.#path, "r");
        const bytes = await file.readFile();
        // A journal that was written anew while it was read is read anew: the old file grows no more.
        if (await this.#isInPlace(await file.stat({ bigint: true }))) {
          this.#found = { file, bytes: bytes.length };
          return bytes;
        }
        await file.close();
      }
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return null;
      throw error;
    }
  }

  async check(): Promise<void> {
    if (this.#file !== undefined) await this.#checkInPlace(this.#file);
  }

  async append(bytes: Uint8Array): Promise<void> {
    if (this.#file === undefined) return this.replace(bytes);
    await writeAll(this.#file.handle, bytes);
    await this.#file.handle.datasync();
    await this.#checkInPlace(this.#file);
  }

  async replace(bytes: Uint8Array): Promise<void> {
    if (this.#file !== undefined) await this.#checkInPlace(this.#file);
    const handle = await open(this.#draft, "w", PRIVATE);
    try {
      await writeAll(handle, bytes);
      await handle.sync();
      const { dev, ino } = await handle.stat({ bigint: true });
      await rename(this.#draft, this.#path);
      await syncDirectory(this.#directory);
      await this.#checkFound();
      // Whoever has read the old file and has not put its own in place yet sees by its length that it goes on here.
      await this.#file?.handle.write("\n");
      await this.#checkInPlace({ dev, ino });
      await this.#file?.handle.close();
      this.#file = { handle, dev, ino };
    } catch (error) {
      await handle.close().catch(() => {});
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#found?.file.close();
    await this.#file?.handle.close();
    this.#found = this.#file = undefined;
  }

  /** Nobody wrote to the old file after it was read. And drafts that a crash has left are of no use any more. */
  async #checkFound(): Promise<void> {
    const found = this.#found;
    if (found === undefined) return;
    this.#found = undefined;
    try {
      if ((await found.file.stat()).size !== found.bytes) throw this.#shared();
    } finally {
      await found.file.close();
    }
    for (const name of await readdir(this.#directory))
      if (DRAFT.test(name)) await unlink(join(this.#directory, name)).catch(() => {});
  }

  async #checkInPlace(file: Omit<InPlace, "handle">): Promise<void> {
    if (!(await this.#isInPlace(file))) throw this.#shared();
  }

  async #isInPlace({ dev, ino }: Omit<InPlace, "handle">): Promise<boolean> {
    const there = await stat(this.#path, { bigint: true }).catch(() => undefined);
    return ino === there?.ino && dev === there.dev;
  }

  #shared(): ConclaveError {
    return new ConclaveError(
      "conflict",
      `another process writes to ${this.#path}, or has removed it; each voter needs a directory of its own, and each directory one process`,
    );
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += (await file.write(bytes, at)).bytesWritten;
}
