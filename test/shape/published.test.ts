/** The package as it would be published: small, complete, and nobody loads what they do not ask for. */
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { linked } from "../../scripts/package.mjs";
import { ROOT } from "./sources.js";

const STAGE = join(ROOT, "artifacts/package");
const LARGEST = 1_310_000;

interface Published {
  readonly exports: Record<string, string | { readonly types: string; readonly default: string }>;
  readonly scripts?: unknown;
}

const staged = (path: string): string => readFileSync(join(STAGE, path), "utf8");

/** What is loaded together with a file, by imports that are not dynamic. */
function loaded(entry: string, seen = new Set<string>()): Set<string> {
  if (seen.has(entry)) return seen;
  seen.add(entry);
  const text = readFileSync(entry, "utf8");
  for (const [, specifier] of text.matchAll(/(?:\bfrom|\bimport)\s*"(\.[^"]+)"/g))
    loaded(resolve(dirname(entry), specifier!), seen);
  return seen;
}

const built = (entry: string): string[] => [...loaded(join(ROOT, entry))].map((path) => relative(ROOT, path));

describe("the package as it is published", { timeout: 120_000 }, () => {
  let manifest: Published;

  beforeAll(() => {
    execFileSync(process.execPath, [join(ROOT, "scripts/package.mjs"), "--stage"], { stdio: "pipe" });
    manifest = JSON.parse(staged("package.json")) as Published;
  }, 120_000);

  it("is at most 1.3 MB unpacked", () => {
    const files = readdirSync(STAGE, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    const size = files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
    expect(size).toBeLessThan(LARGEST);
    expect(size).toBeGreaterThan(LARGEST / 4);
  });

  it("has a README without a link that leads nowhere, with and without a home", () => {
    const links = (text: string): string[] =>
      [...text.replaceAll(/^```[\s\S]*?^```$/gm, "").matchAll(/\]\(([^)\s]+)\)/g)].map(
        ([, target]) => target!,
      );
    for (const name of ["README.md", "SECURITY.md"]) {
      const dead = links(staged(name)).filter(
        (target) => !/^https?:|^#/.test(target) && !existsSync(join(STAGE, target)),
      );
      expect(dead, name).toEqual([]);
    }
    const readme = readFileSync(join(ROOT, "README.md"), "utf8");
    const absolute = links(linked(readme, "https://example.org/files/"));
    expect(absolute.length).toBe(links(readme).length);
    expect(absolute).toContain("https://example.org/files/docs/guide/cron.md");
    expect(absolute.every((target) => /^https:|^#/.test(target))).toBe(true);
    expect(linked("[a](b.md) `x` [c](https://d)", undefined)).toBe("a `x` [c](https://d)");
  });

  it("has every declaration that a program needs, compiled against each entry point with all checks", () => {
    const folder = mkdtempSync(join(tmpdir(), "conclave-consumer-"));
    try {
      mkdirSync(join(folder, "node_modules"));
      symlinkSync(STAGE, join(folder, "node_modules/conclave"), "dir");
      for (const name of ["@types", "croner", "ioredis", "pg", "prom-client", "commander", "undici-types"])
        if (existsSync(join(ROOT, "node_modules", name)))
          symlinkSync(join(ROOT, "node_modules", name), join(folder, "node_modules", name), "dir");
      const entries = Object.entries(manifest.exports).filter(([, target]) => typeof target === "object");
      const lines = entries.map(
        ([path], i) => `import * as m${i} from "conclave${path.slice(1)}"; void m${i};`,
      );
      writeFileSync(join(folder, "use.mts"), lines.join("\n"));
      const compilerOptions = {
        module: "nodenext",
        target: "es2022",
        lib: ["es2023", "esnext.disposable"],
        strict: true,
        noEmit: true,
      };
      const paths = { types: ["node"], preserveSymlinks: true, skipLibCheck: true };
      writeFileSync(
        join(folder, "tsconfig.json"),
        JSON.stringify({ compilerOptions: { ...compilerOptions, ...paths }, files: ["use.mts"] }),
      );
      const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
      expect(() => execFileSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8" })).not.toThrow();
      expect(missingTypes()).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  /** Declarations that are imported by those that are there. */
  function missingTypes(): string[] {
    return readdirSync(join(STAGE, "dist"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith(".d.ts"))
      .flatMap(({ parentPath, name }) => {
        const text = readFileSync(join(parentPath, name), "utf8");
        return [...text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"(\.[^"]+)\.js"/g)].map(([, path]) =>
          resolve(parentPath, `${path}.d.ts`),
        );
      })
      .filter((path) => !existsSync(path));
  }

  it("works when its code is short: a command, and every entry point", () => {
    const run = (...words: string[]): string => execFileSync(process.execPath, words, { encoding: "utf8" });
    expect(run(join(STAGE, "dist/cli/main.js"), "--version")).toMatch(/^\d+\.\d+\.\d+\n$/);
    const modules = Object.values(manifest.exports).flatMap((target) =>
      typeof target === "object" ? [target.default] : [],
    );
    const program = modules.map((path) => `await import(${JSON.stringify(join(STAGE, path))});`).join("\n");
    expect(run("--input-type=module", "--eval", program)).toBe("");
  });

  it.each([
    "index",
    "backend",
    "cron/index",
    "fencing/index",
    "metrics/index",
    "sidecar/index",
    "backends/etcd/index",
  ])("whoever loads %s loads no suite, no simulator and no demo", (entry) => {
    expect(built(`dist/${entry}.js`).filter((path) => /^dist\/(testing|demo|cli)\//.test(path))).toEqual([]);
  });

  it("the command line loads the demo only for the demo, and no suite", () => {
    const all = built("dist/cli/start.js");
    expect(all).toContain("dist/cli/serve.js");
    expect(all.filter((path) => /^dist\/(testing|demo)\//.test(path))).toEqual(["dist/demo/choices.js"]);
  });
});
