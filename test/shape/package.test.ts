/** What is published is what was built, and what was promised. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT, files } from "./sources.js";

interface Target {
  readonly types: string;
  readonly default: string;
}

interface Manifest {
  readonly name: string;
  readonly bin: Record<string, string>;
  readonly exports: Record<string, Target | string>;
  readonly dependencies?: Record<string, string>;
  readonly devDependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
  readonly scripts: Record<string, string>;
}

const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Manifest;
const entries = Object.entries(manifest.exports).flatMap(([subpath, target]) =>
  typeof target === "string" ? [] : [{ subpath, target }],
);

/** `./dist/law/x.js` → `src/law/x.ts` */
const sourceOf = (built: string): string => {
  const source = built.replace(/^\.?\/?dist\//, "src/");
  // The page is not compiled.
  return source.startsWith("src/dashboard/page/") ? source : source.replace(/\.js$/, ".ts");
};

describe("package", () => {
  it.each(entries)("$subpath is built and loads", ({ subpath, target }) => {
    expect(existsSync(join(ROOT, sourceOf(target.default))), sourceOf(target.default)).toBe(true);
    for (const file of [target.types, target.default]) expect(existsSync(join(ROOT, file)), file).toBe(true);
    expect(target.types).toBe(target.default.replace(/\.js$/, ".d.ts"));
    const specifier = subpath.replace(".", manifest.name);
    // A process of its own: it must load by its public name, print nothing, and end by itself.
    const program = `import ${JSON.stringify(specifier)};`;
    const output = execFileSync(process.execPath, ["--input-type=module", "--eval", program], {
      cwd: ROOT,
      encoding: "utf8",
      timeout: 20_000,
      stdio: ["ignore", "pipe", "pipe"],
    });
    expect(output).toBe("");
  });

  it("has a source for every built file", () => {
    const orphans = files("dist", ".js").filter((built) => !existsSync(join(ROOT, sourceOf(built))));
    expect(orphans).toEqual([]);
  });

  it("has commands that can be run", () => {
    for (const path of Object.values(manifest.bin)) {
      expect(readFileSync(join(ROOT, path), "utf8").startsWith("#!/usr/bin/env node"), path).toBe(true);
      expect(statSync(join(ROOT, path)).mode & 0o100, `${path} is executable`).not.toBe(0);
    }
  });

  it("compiles examples and tests against the sources of the same entry points", () => {
    const tools = JSON.parse(readFileSync(join(ROOT, "tsconfig.tools.json"), "utf8")) as {
      compilerOptions: { paths: Record<string, string[]> };
    };
    const expected = entries.map(({ subpath, target }) => [
      subpath.replace(".", manifest.name),
      [`./${sourceOf(target.default)}`],
    ]);
    expect(tools.compilerOptions.paths).toEqual(Object.fromEntries(expected));
  });

  it("has a lock file that installs on every platform and names no address", () => {
    const check = (): string =>
      execFileSync(process.execPath, ["scripts/lockfile.mjs", "--check"], { cwd: ROOT, encoding: "utf8" });
    expect(check).not.toThrow();
  });

  it("has no dependency that runs code when installed", () => {
    const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
      packages: Record<string, { hasInstallScript?: boolean; dev?: boolean; optional?: boolean }>;
    };
    const scripted = Object.entries(lock.packages).filter(
      ([, entry]) => entry.hasInstallScript && !entry.dev,
    );
    expect(scripted.map(([path]) => path)).toEqual([]);
  });

  it("explains every dependency in docs/dependencies.md, and no other", () => {
    const page = readFileSync(join(ROOT, "docs/dependencies.md"), "utf8");
    const listed = [...page.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1] ?? "");
    const real = Object.keys({
      ...manifest.dependencies,
      ...manifest.devDependencies,
      ...manifest.peerDependencies,
      ...manifest.optionalDependencies,
    });
    expect(listed.toSorted()).toEqual(real.toSorted());
  });
});
