/** The journal's file: `journal` in a directory of its own, which one process has at a time. */
import type { FileHandle } from "node:fs/promises";
import { mkdir, open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf, syncDirectory } from "../../files/numbered-links.js";
import type { JournalDisk } from "./journal.js";

const PRIVATE = 0o600;

export class NodeJournalDisk implements JournalDisk {
  readonly #directory: string;
  readonly #path: string;
  #file: FileHandle | undefined;

  constructor(directory: string) {
    this.#directory = directory;
    this.#path = join(directory, "journal");
  }

  async load(): Promise<Uint8Array | null> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    try {
      return await readFile(this.#path);
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return null;
      throw error;
    }
  }

  async append(bytes: Uint8Array): Promise<void> {
    if (this.#file === undefined) return this.replace(bytes);
    await writeAll(this.#file, bytes);
    await this.#file.datasync();
  }

  async replace(bytes: Uint8Array): Promise<void> {
    const temporary = `${this.#path}.new`;
    const file = await open(temporary, "w", PRIVATE);
    try {
      await writeAll(file, bytes);
      await file.sync();
      await rename(temporary, this.#path);
      await syncDirectory(this.#directory);
    } catch (error) {
      await file.close().catch(() => {});
      throw error;
    }
    await this.#file?.close();
    this.#file = file;
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += (await file.write(bytes, at)).bytesWritten;
}
