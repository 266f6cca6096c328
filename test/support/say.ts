import { writeSync } from "node:fs";

/** A line to whoever started us, written before this returns: what follows may stop or kill us. */
export function say(line: Record<string, unknown>): void {
  const text = JSON.stringify(line, (_, value: unknown) =>
    typeof value === "bigint" ? value.toString() : value,
  );
  writeSync(1, `${text}\n`);
}
