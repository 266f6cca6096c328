/**
 * What a run wrote down: JSON lines, one object each. Part of the checker: no
 * import from the library, so that its mistakes are not shared.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC as strings. `el` = election, `inc` =
 * one start of one candidate. Besides the candidates' lines (`hello`, `leading`,
 * `span`, `not-held`, `stopped`, `bye`):
 *
 *   acc, rej {token, max, value}      written by the resource, in its own order
 *   fault    {kind, t0, t1}           done to `inc`, between these instants
 *   heal     {t, boundMs}             from here on someone must lead within the bound
 *   end      {t}                      the run is over
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface Line {
  readonly ev: string;
  readonly el: string;
  readonly inc: string;
  readonly t: bigint;
  readonly token: bigint;
  readonly from: bigint;
  readonly to: bigint;
  readonly n: number;
  readonly why: string;
  readonly kind: string;
  readonly t0: bigint;
  readonly t1: bigint;
  readonly max: bigint;
  readonly value: number;
  readonly ttl: number;
  readonly boundMs: number;
}

/** The harness did something that says nothing about the library. */
export class HarnessError extends Error {}

const REQUIRED: Record<string, readonly (keyof Line)[]> = {
  hello: ["el", "inc", "t", "ttl"],
  leading: ["el", "inc", "t", "token"],
  span: ["el", "inc", "token", "from", "to", "n"],
  "not-held": ["el", "inc", "token", "from", "to"],
  stopped: ["el", "inc", "t", "token", "why"],
  bye: ["el", "inc", "t"],
  acc: ["el", "inc", "token", "max", "value"],
  rej: ["el", "inc", "token", "max", "value"],
  fault: ["el", "inc", "kind", "t0", "t1"],
  heal: ["el", "t", "boundMs"],
  end: ["t"],
};

const BIG = ["t", "token", "from", "to", "t0", "t1", "max"] as const;
const NUMBER = ["n", "ttl", "boundMs", "value"] as const;
const TEXT = ["el", "inc", "why", "kind"] as const;

export function parseLine(text: string): Line {
  const raw = JSON.parse(text) as Record<string, unknown>;
  const line: Record<string, unknown> = { ev: raw["ev"] };
  for (const field of BIG) if (typeof raw[field] === "string") line[field] = BigInt(raw[field]);
  for (const field of NUMBER) if (typeof raw[field] === "number") line[field] = raw[field];
  for (const field of TEXT) if (typeof raw[field] === "string") line[field] = raw[field];
  const required = REQUIRED[String(raw["ev"])];
  if (required === undefined) throw new HarnessError(`unknown event: ${text}`);
  for (const field of required) {
    if (line[field] === undefined) throw new HarnessError(`${String(raw["ev"])} without ${field}: ${text}`);
  }
  return line as Partial<Line> as Line;
}

/** A file of one writer. A line torn by a kill is its last; anywhere else it is the harness's fault. */
export function parseFile(text: string): Line[] {
  const lines = text.split("\n");
  const torn = lines.pop();
  const parsed = lines.map(parseLine);
  if (torn !== undefined && torn !== "") {
    try {
      parsed.push(parseLine(torn));
    } catch {
      // Cut off in the middle: what it would have said is not known.
    }
  }
  return parsed;
}

/** All files of a run. Order within a file is kept; between files only the stamps count. */
export function readHistory(directory: string): Line[] {
  const names = readdirSync(directory).filter((name) => name.endsWith(".jsonl"));
  return names.sort().flatMap((name) => parseFile(readFileSync(join(directory, name), "utf8")));
}
