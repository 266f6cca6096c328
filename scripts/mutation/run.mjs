#!/usr/bin/env node
/**
 * make test-mutation                    all parts, one after the other (hours on two cores)
 *                ARGS=record            one of them; several are separated by spaces
 *                ARGS=src/election/work.ts  single files; no goal is checked
 *
 * Changes the code one place at a time and runs the fast tests that reach it
 * (vitest.mutation.config.ts). A change that no test notices is a survivor. The
 * score is the share of changes that were noticed. Exit code 1 if a part is
 * below its goal. Changes that no test can notice are listed in docs/mutation.md.
 *
 * CONCLAVE_MUTATION_WORKERS=1 and CONCLAVE_MUTATION_TIMEOUT_MS=30000 are for a
 * machine that has other work: there a change is soon taken for one that hangs.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { PARTS } from "./parts.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const REPORT = `${root}artifacts/mutation/report.json`;
const SHOWN = 80;

/** Options for a machine that is shared with others. */
function shared() {
  const { CONCLAVE_MUTATION_WORKERS: workers, CONCLAVE_MUTATION_TIMEOUT_MS: timeoutMs } = process.env;
  return [...(workers ? ["--concurrency", workers] : []), ...(timeoutMs ? ["--timeoutMS", timeoutMs] : [])];
}

function mutate(files, isolate) {
  mkdirSync(`${root}artifacts/mutation`, { recursive: true });
  const args = ["--no-install", "stryker", "run", "--mutate", files.join(","), ...shared()];
  const env = { ...process.env, CONCLAVE_MUTATION_ISOLATE: isolate ? "yes" : "no" };
  const { status } = spawnSync("npx", args, { cwd: root, env, stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0) throw new Error(`stryker failed with exit code ${status}`);
  return JSON.parse(readFileSync(REPORT, "utf8")).files;
}

/** Counts by status; a time-out is a change that was noticed: the tests did not end. */
function tally(mutants) {
  const count = (...statuses) => mutants.filter(({ status }) => statuses.includes(status)).length;
  const killed = count("Killed");
  const noticed = killed + count("Timeout");
  const survived = count("Survived", "NoCoverage");
  return {
    noticed,
    killed,
    timeouts: count("Timeout"),
    survived,
    ignored: count("Ignored"),
    all: noticed + survived,
  };
}

function percent(part, all) {
  return all === 0 ? 100 : (100 * part) / all;
}

function line(name, counts, goal) {
  const { noticed, killed, all, survived, timeouts, ignored } = counts;
  const score = `${percent(noticed, all).toFixed(1).padStart(6)} % (${percent(killed, all).toFixed(1)} % without time-outs)`;
  const goals = goal > 0 ? `  goal ${goal} %` : "";
  return `${name.padEnd(34)} ${score}  ${noticed} of ${all} noticed (${killed} killed, ${timeouts} by time-out), ${survived} survived, ${ignored} left out${goals}`;
}

function printSurvivors(file, { source, mutants }) {
  const lines = source.split("\n");
  for (const { status, location, replacement } of mutants) {
    if (status !== "Survived" && status !== "NoCoverage") continue;
    const { start, end } = location;
    const first = lines[start.line - 1];
    const was =
      start.line === end.line
        ? first.slice(start.column - 1, end.column - 1)
        : `${first.slice(start.column - 1)} …`;
    const now = (replacement ?? "").replace(/\s+/g, " ");
    const covered = status === "NoCoverage" ? " (no test gets here)" : "";
    console.log(`  ${file}:${start.line}  ${was.slice(0, SHOWN)}  →  ${now.slice(0, SHOWN)}${covered}`);
  }
}

function runPart(name, { files, goal, isolate = false }) {
  const found = mutate(files, isolate);
  const names = Object.keys(found).sort();
  console.log(`\nSurvivors in ${name}`);
  for (const file of names) printSurvivors(file, found[file]);
  const each = names.map((file) => line(`  ${file.replace("src/", "")}`, tally(found[file].mutants), 0));
  const counts = tally(names.flatMap((file) => found[file].mutants));
  return {
    text: [line(name, counts, goal), ...each].join("\n"),
    reached: percent(counts.noticed, counts.all) >= goal,
  };
}

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in PARTS) && !name.endsWith(".ts"));
if (unknown.length > 0) {
  console.error(
    `no such part: ${unknown.join(", ")}; there are ${Object.keys(PARTS).join(", ")}, and single .ts files`,
  );
  process.exit(2);
}
const names = wanted.length > 0 ? wanted : Object.keys(PARTS);
const results = names.map((name) =>
  runPart(name, PARTS[name] ?? { files: [name], goal: 0, isolate: name.startsWith("src/fencing/") }),
);
console.log(`\nMutation score\n${results.map(({ text }) => text).join("\n")}`);
process.exitCode = results.every(({ reached }) => reached) ? 0 : 1;
