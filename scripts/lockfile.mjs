#!/usr/bin/env node
/**
 * Completes package-lock.json so that `npm ci` works on every platform.
 *
 * npm leaves out the binaries of other platforms when a registry does not
 * offer them at the moment of locking, and then refuses its own lock file
 * ("Missing: … from lock file"). The missing entries are known all the same:
 * the parent names them with an exact version, and their names say for which
 * platform they are. Addresses are left out on purpose: each machine asks the
 * registry it is set up for.
 *
 *   node scripts/lockfile.mjs           complete the file
 *   node scripts/lockfile.mjs --check   say what is wrong and fail
 */
import { readFileSync, writeFileSync } from "node:fs";

const LOCK = new URL("../package-lock.json", import.meta.url);

const SYSTEMS = [
  "aix",
  "android",
  "darwin",
  "freebsd",
  "linux",
  "netbsd",
  "openbsd",
  "openharmony",
  "sunos",
  "win32",
];
const CPUS = ["arm", "arm64", "ia32", "loong64", "mips64el", "ppc64", "riscv64", "s390x", "x64", "wasm32"];
const EXACT = /^\d+\.\d+\.\d+(-[\w.]+)?$/;

/** `@x/binding-linux-arm64-musl` → { os: ["linux"], cpu: ["arm64"], libc: ["musl"] } */
function platform(name) {
  const words = name.split(/[/-]/);
  const os = SYSTEMS.find((s) => words.includes(s));
  const cpu = CPUS.find((c) => words.includes(c));
  if (cpu === undefined || (os === undefined && cpu !== "wasm32")) return null;
  const libc = words.includes("musl") ? "musl" : words.includes("gnu") ? "glibc" : undefined;
  return {
    cpu: [cpu],
    ...(os === "linux" && libc ? { libc: [libc] } : {}),
    ...(os ? { os: [os] } : {}),
  };
}

const lock = JSON.parse(readFileSync(LOCK, "utf8"));
const packages = lock.packages;
const problems = [];

for (const [path, entry] of Object.entries(packages)) {
  if (entry.resolved !== undefined && !entry.link) problems.push(`${path} names an address ("resolved")`);
  delete entry.resolved;
}
for (const [path, parent] of Object.entries(packages)) {
  for (const [name, range] of Object.entries(parent.optionalDependencies ?? {})) {
    if (packages[`${path}/node_modules/${name}`] || packages[`node_modules/${name}`]) continue;
    const where = platform(name);
    if (!EXACT.test(range) || where === null) continue;
    problems.push(`${name}@${range} (needed by ${path}) has no entry`);
    packages[`node_modules/${name}`] = {
      version: range,
      ...where,
      ...(parent.dev ? { dev: true } : {}),
      optional: true,
    };
  }
}

if (process.argv.includes("--check")) {
  for (const problem of problems) console.error(`package-lock.json: ${problem}`);
  if (problems.length > 0) console.error("run: node scripts/lockfile.mjs");
  process.exitCode = problems.length > 0 ? 1 : 0;
} else if (problems.length > 0) {
  const root = packages[""];
  const rest = Object.entries(packages).filter(([path]) => path !== "");
  rest.sort(([a], [b]) => a.localeCompare(b, "en"));
  lock.packages = { "": root, ...Object.fromEntries(rest) };
  writeFileSync(LOCK, `${JSON.stringify(lock, null, 2)}\n`);
  console.log(`package-lock.json: mended ${problems.length} entries`);
}
