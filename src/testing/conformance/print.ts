import type { ConformanceOptions } from "./options.js";

/** Where skips and warnings go. */
export function printer({ print }: Pick<ConformanceOptions, "print">): (line: string) => void {
  return print ?? ((line) => void process.stderr.write(`${line}\n`));
}
