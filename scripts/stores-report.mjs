#!/usr/bin/env node
/**
 * The last page of `make test`: which stores were really tested, and which
 * were absent. A store counts as tested only if its conformance tests ran and
 * passed: those need the server itself, others of its tests may not. Skipped
 * tests are not evidence. `CONCLAVE_REQUIRE=etcd,kubernetes` turns the absence
 * of those into a failure.
 *
 * A test file belongs to a store if a part of its path is the store's name
 * (test/etcd/…, test/conformance/etcd.test.ts). The stores are the folders
 * of src/backends; programs that tests need besides are reported in the same way.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
/** Not stores, but absent on many machines too: the browser that the page is tested in. */
const PROGRAMS = ["chromium"];

function backends() {
  const entries = readdirSync(`${root}/src/backends`, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}

function results() {
  const path = `${root}/artifacts/vitest.json`;
  if (!existsSync(path)) return null;
  return JSON.parse(readFileSync(path, "utf8"));
}

function belongsTo(store, file) {
  return relative(root, file).split(/[/.]/).includes(store);
}

/** Whoever has a long form (`--long`) needs the server, and so do all tests of a program. */
const everyTest = process.argv.includes("--long");

function isProof(store, file) {
  return everyTest || PROGRAMS.includes(store) || relative(root, file).split("/").includes("conformance");
}

function tally(store, files) {
  const counts = { passed: 0, failed: 0, skipped: 0, proofs: 0 };
  for (const file of files) {
    if (!belongsTo(store, file.name)) continue;
    for (const test of file.assertionResults) {
      if (test.status === "passed" && isProof(store, file.name)) counts.proofs++;
      if (test.status === "passed") counts.passed++;
      else if (test.status === "failed") counts.failed++;
      else counts.skipped++;
    }
  }
  return counts;
}

const run = results();
if (run === null) {
  console.error("stores: no test results in artifacts/vitest.json; run `make test`");
  process.exit(1);
}

const required = (process.env["CONCLAVE_REQUIRE"] ?? "")
  .split(",")
  .map((name) => name.trim())
  .filter((name) => name !== "");
const stores = [...new Set([...backends(), ...PROGRAMS, ...required])].sort();
const problems = [];

console.log("\nStores, and programs that tests need");
for (const store of stores) {
  const { passed, failed, skipped, proofs } = tally(store, run.testResults);
  const tested = proofs > 0;
  const counts = `${passed} passed${failed ? `, ${failed} failed` : ""}${skipped ? `, ${skipped} skipped` : ""}`;
  const must = required.includes(store) ? "required" : "";
  console.log(
    `  ${store.padEnd(12)} ${(tested ? "tested" : "ABSENT").padEnd(8)} ${counts.padEnd(28)} ${must}`.trimEnd(),
  );
  if (!tested && must) problems.push(`${store} was required (CONCLAVE_REQUIRE) and was not tested`);
  else if (!tested) console.log(`  ${"".padEnd(12)} nothing is known about it on this machine`);
}

for (const problem of problems)
  console.error(`stores: ${problem}; scripts/servers/install says what is missing`);
const passed = run.numPassedTests;
const failed = run.numFailedTests + problems.length;
console.log(`\n${passed} passed, ${failed} failed, ${run.numPendingTests + run.numTodoTests} skipped`);
process.exitCode = failed > 0 ? 1 : 0;
