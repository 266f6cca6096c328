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
import { pathToFileURL } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { linked } from "../../scripts/package.mjs";
import { files, ROOT, withoutComments } from "./sources.js";

const STAGE = join(ROOT, "artifacts/package");
const LARGEST = 2_000_000;

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

  it("is at most 2.0 MB unpacked", () => {
    const all = readdirSync(STAGE, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    const size = all.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
    expect(size).toBeLessThan(LARGEST);
    expect(size).toBeGreaterThan(LARGEST / 2);
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

  it("has code that can be read: its names, and its lines", () => {
    const code = files("dist", ".js").filter((path) => !path.startsWith("dist/dashboard/page/"));
    for (const path of code) {
      const original = withoutComments(readFileSync(join(ROOT, path), "utf8"));
      const published = staged(path);
      const names = [...original.matchAll(/\b(?:function|class|const|let) (\w+)/g)].map(([, name]) => name!);
      expect(
        names.filter((name) => !new RegExp(`\\b${name}\\b`).test(published)),
        path,
      ).toEqual([]);
      const statements = original.split("\n").filter((line) => line.trimEnd().endsWith(";")).length;
      expect(published.split("\n").length, path).toBeGreaterThanOrEqual(statements / 2);
    }
    expect(staged("dist/election/election.d.ts")).toContain("Hands this candidate's term over");
  });

  it("works without its comments: a command, and every entry point", () => {
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

  it("asked for its version, the command line loads two files", () => {
    expect(built("dist/cli/main.js").sort()).toEqual(["dist/cli/main.js", "dist/cli/version.js"]);
    expect(reallyLoaded("--version")).toEqual(["dist/cli/main.js", "dist/cli/version.js"]);
    expect(reallyLoaded("--help").filter((path) => /^dist\/(?:testing|demo)\//.test(path))).toEqual([
      "dist/demo/choices.js",
    ]);
  });

  /** Of the staged package, by a real run of its command: what Node itself says that it has compiled. */
  function reallyLoaded(...words: readonly string[]): string[] {
    const folder = mkdtempSync(join(tmpdir(), "conclave-loaded-"));
    try {
      const env = { ...process.env, NODE_V8_COVERAGE: folder };
      execFileSync(process.execPath, [join(STAGE, "dist/cli/main.js"), ...words], { env, stdio: "pipe" });
      const [report] = readdirSync(folder);
      const { result } = JSON.parse(readFileSync(join(folder, report!), "utf8")) as {
        result: { url: string }[];
      };
      const own = pathToFileURL(`${STAGE}/`).href;
      return result.flatMap(({ url }) => (url.startsWith(own) ? [url.slice(own.length)] : [])).sort();
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  it("the command line loads the demo only for the demo, and no suite", () => {
    const all = built("dist/cli/start.js");
    expect(all).toContain("dist/cli/serve.js");
    expect(all.filter((path) => /^dist\/(testing|demo)\//.test(path))).toEqual(["dist/demo/choices.js"]);
  });
});
