/**
 * Runs every bench (`bench/<name>/run.ts`) one after the other and prints one
 * table. `make bench ARGS=file` runs only that one. What is under way, and since
 * when, goes to stderr.
 */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import type { Bench, Row } from "./measure.js";

const wanted = process.argv.slice(2);
const here = new URL(".", import.meta.url);
const names = readdirSync(here, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && (wanted.length === 0 || wanted.includes(entry.name)))
  .map((entry) => entry.name);
if (names.length === 0) throw new Error(`no such bench: ${wanted.join(", ")}`);

/** What a bench's module gives; `minutes`: how long it takes on a machine with nothing else to do, where it says so. */
interface BenchModule {
  readonly default: Bench;
  readonly minutes?: number;
}

const rows: (Row & { readonly bench: string })[] = [];
const started = performance.now();
const elapsed = (): string => {
  const seconds = Math.round((performance.now() - started) / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
};
for (const [i, name] of names.entries()) {
  const { default: bench, minutes } = (await import(new URL(`${name}/run.js`, here).href)) as BenchModule;
  const takes = minutes === undefined ? "" : `, about ${minutes} min`;
  process.stderr.write(`bench ${name} (${i + 1} of ${names.length}${takes})\n`);
  for await (const row of bench()) {
    process.stderr.write(`  ${elapsed()} ${row.what}: ${row.result}\n`);
    rows.push({ bench: name, ...row });
  }
}

const machine = `Node ${process.version}, ${process.platform} ${release()}, ${cpus().length} x ${cpus()[0]?.model ?? "?"}, ${Math.round(totalmem() / 2 ** 30)} GiB`;
const header = ["bench", "what", "result", "beside it"];
const cells = rows.map((row) => [row.bench, row.what, row.result, row.beside ?? ""]);
const widths = header.map((title, column) =>
  Math.max(title.length, ...cells.map((line) => line[column]?.length ?? 0)),
);
const line = (parts: readonly string[]): string =>
  `| ${parts.map((part, column) => part.padEnd(widths[column] ?? 0)).join(" | ")} |`;

console.log(`\n${machine}\n`);
console.log(line(header));
console.log(`|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`);
for (const cell of cells) console.log(line(cell));

mkdirSync("artifacts", { recursive: true });
writeFileSync("artifacts/bench.json", `${JSON.stringify({ machine, rows }, null, 2)}\n`);
