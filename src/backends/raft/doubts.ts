/** What a voter's files are kept on and who may read them: it works, and is not what was meant. */
import { statSync } from "node:fs";
import { statfs } from "node:fs/promises";

/** By statfs(2): tmpfs, ramfs. */
const IN_MEMORY: readonly number[] = [0x01021994, 0x858458f6];
const OTHERS = 0o004;

/** `undefined`: nothing is known against it. */
export async function doubtOfDirectory(
  directory: string,
  typeOf: (path: string) => Promise<number> = async (path) => (await statfs(path)).type,
): Promise<string | undefined> {
  const type = await typeOf(directory).catch(() => undefined);
  if (type === undefined || !IN_MEMORY.includes(type)) return undefined;
  return `dir=${directory} is in memory (tmpfs): a restart of the machine loses this voter's journal; use a disk`;
}

export function doubtOfKeyFile(path: string): string | undefined {
  try {
    if ((statSync(path).mode & OTHERS) === 0) return undefined;
  } catch {
    return undefined; // why it cannot be read is told by whoever reads it
  }
  return `the key file ${path} may be read by every user of this machine: chmod 600`;
}
