#!/usr/bin/env node
/**
 * What is published, made from dist/ in artifacts/package: code that can be read, without its comments; the types that the entry points reach,
 * with theirs; and a README whose links lead somewhere from there.
 *
 *   node scripts/package.mjs            stages, and packs into conclave-<version>.tgz
 *   node scripts/package.mjs --stage    stages only
 *
 * Links become absolute if package.json has a `homepage` under which the repository's files are; without one there is nothing
 * to lead to, and the words stay without a link.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { minifySync } from "rolldown/utils";

const root = fileURLToPath(new URL("..", import.meta.url));
const stage = join(root, "artifacts/package");
const LARGEST = 2_000_000;
/** Names, lines and order stay: whoever is woken at night reads this code, and steps through it. */
const READABLE = { module: true, compress: false, mangle: false, codegen: { removeWhitespace: false } };

/** What the files are there for, in the order in which they are looked at. */
const PARTS = [
  ["types", /\.d\.ts$/],
  ["texts", /^[^/]*$/],
  ["conclave/testing", /^dist\/testing\//],
  ["stores", /^dist\/(?:backends|record|session|files)\//],
  ["page", /^dist\/dashboard\//],
  ["demo", /^dist\/demo\//],
  ["command line", /^dist\/(?:cli|exec|terminal)\//],
  ["elections, locks, cron, fences, sidecar", /^dist\//],
];

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

function filesOf(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Every declaration that the published entry points need; the others are of the inside. */
function reachedTypes() {
  const reached = new Set();
  const visit = (path) => {
    if (reached.has(path)) return;
    reached.add(path);
    const text = readFileSync(path, "utf8");
    for (const [, specifier] of text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"(\.[^"]+)"/g))
      visit(resolve(dirname(path), specifier.replace(/\.js$/, ".d.ts")));
  };
  for (const target of Object.values(manifest.exports))
    if (typeof target === "object") visit(join(root, target.types));
  return reached;
}

/** Without what is said of a file as a whole, above its imports. Four spaces a level, as the compiler writes them, become one. */
function narrow(declarations) {
  return declarations
    .replace(/^\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n(?=import )/, "")
    .replace(/^ +/gm, (blanks) => " ".repeat(Math.floor(blanks.length / 4) + (blanks.length % 4)));
}

function stageDist() {
  const types = reachedTypes();
  for (const path of filesOf(join(root, "dist"))) {
    const name = relative(root, path);
    if (name === "dist/.built" || name.endsWith(".map")) continue;
    if (name.endsWith(".d.ts") && !types.has(path)) continue;
    const to = join(stage, name);
    mkdirSync(dirname(to), { recursive: true });
    if (name.endsWith(".d.ts")) writeFileSync(to, narrow(readFileSync(path, "utf8")));
    else if (!name.endsWith(".js")) cpSync(path, to);
    else writeFileSync(to, withoutComments(name, path), { mode: statSync(path).mode });
  }
}

function withoutComments(name, path) {
  const { code, errors } = minifySync(name, readFileSync(path, "utf8"), READABLE);
  if (errors.length > 0) throw new Error(`${name}: ${errors[0].message}`);
  return `${code}\n`;
}

/** How many bytes each part has, the largest first. */
function sizes(files) {
  const bytes = new Map();
  for (const path of files) {
    const name = relative(stage, path);
    const [part] = PARTS.find(([, fits]) => fits.test(name));
    bytes.set(part, (bytes.get(part) ?? 0) + statSync(path).size);
  }
  return [...bytes].sort(([, a], [, b]) => b - a);
}

/** Links to files of the repository: absolute, or words without a link. Blocks of code stay as they are. */
export function linked(text, homepage) {
  const image = /\[!\[([^\]]*)\]\([^)]*\)\]\([^)]*\)\n*|!\[([^\]]*)\]\([^)]*\)\n*/g;
  const parts = text.split(/(^```[\s\S]*?^```$)/m);
  return parts
    .map((part) => {
      if (part.startsWith("```")) return part;
      if (homepage)
        return part.replace(
          /\]\((?!https?:|#)([^)\s]+)\)/g,
          (_, path) => `](${homepage.replace(/\/$/, "")}/${path})`,
        );
      return part.replace(image, "").replace(/\[([^\]]+)\]\((?!https?:|#)[^)\s]+\)/g, "$1");
    })
    .join("");
}

function stageText() {
  for (const name of ["README.md", "SECURITY.md"]) {
    const text = linked(readFileSync(join(root, name), "utf8"), manifest.homepage);
    const where =
      "\nThe pages that are named here are in the repository, from which this package was made.\n";
    writeFileSync(join(stage, name), name === "README.md" && !manifest.homepage ? text + where : text);
  }
  cpSync(join(root, "LICENSE"), join(stage, "LICENSE"));
  const { scripts: _scripts, devDependencies: _dev, files: _files, ...published } = manifest;
  writeFileSync(join(stage, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
}

function main() {
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });
  stageDist();
  stageText();
  const files = filesOf(stage);
  const parts = sizes(files);
  const size = parts.reduce((sum, [, bytes]) => sum + bytes, 0);
  if (size > LARGEST) throw new Error(`the package would have ${size} bytes, and ${LARGEST} are allowed`);
  console.log(`artifacts/package: ${files.length} files, ${size} bytes`);
  for (const [part, bytes] of parts) console.log(`${String(bytes).padStart(9)}  ${part}`);
  if (process.argv.includes("--stage")) return;
  const packed = execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", root], {
    cwd: stage,
    encoding: "utf8",
  });
  console.log(packed.trim());
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
