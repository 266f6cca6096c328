#!/usr/bin/env node
/**
 * A release, tried dry: makes the package, and says what would be published and what speaks against it. It changes no file of the
 * repository, makes no tag and publishes nothing. The checklist is docs/releasing.md.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (name) => readFileSync(join(root, name), "utf8");
const manifest = JSON.parse(read("package.json"));
const git = (...words) => spawnSync("git", words, { cwd: root, encoding: "utf8" }).stdout.trim();

/** What `## Unreleased` of the changelog holds. */
const changes = /^## Unreleased\n([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(read("CHANGELOG.md"))?.[1] ?? "";
const breaking = (changes.match(/^- \*\*breaking:\*\*/gm) ?? []).length;
const tags = git("tag", "--list", `v${manifest.version}`);

const against = [
  git("status", "--porcelain") !== "" && "the working tree has changes that are not committed",
  changes.trim() === "" && "CHANGELOG.md has nothing under Unreleased",
  tags !== "" && `the tag v${manifest.version} exists: raise the version`,
  manifest.repository === undefined &&
    "package.json names no `repository`: provenance cannot be checked against it",
  manifest.homepage === undefined &&
    "package.json names no `homepage`: links of the packed README become plain words",
].filter(Boolean);

execFileSync(process.execPath, [join(root, "scripts/package.mjs"), "--stage"], { stdio: "inherit" });
const stage = join(root, "artifacts/package");
const packed = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts", "--silent"], {
  cwd: stage,
  encoding: "utf8",
});
const [{ id, size, unpackedSize, entryCount, shasum }] = JSON.parse(packed);

console.log(`
${id}: ${entryCount} files, ${unpackedSize} bytes, ${size} packed, sha1 ${shasum}
from ${git("rev-parse", "HEAD")}
${(changes.match(/^- /gm) ?? []).length} changes since the last release, ${breaking} of them breaking

${against.length === 0 ? "Nothing speaks against it." : `What speaks against it:\n${against.map((line) => `  - ${line}`).join("\n")}`}

Nothing was published. The steps are in docs/releasing.md; the last one, in CI with an identity token:
  npm publish artifacts/package --provenance --access public`);
