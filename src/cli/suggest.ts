/** For a flag that does not exist, the one that was probably meant. */
import type { Command } from "commander";
import { nearest } from "../kit/nearest.js";

/** Of both names a flag may have, the nearest to what was written. `undefined`: none is near. */
export function similarFlag(command: Command, written: string): string | undefined {
  const options = command.createHelp().visibleOptions(command);
  const flags = options
    .flatMap(({ short, long }) => [short, long])
    .filter((flag) => flag?.startsWith("--") === true);
  return nearest(written, flags as string[]);
}
