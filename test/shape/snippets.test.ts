/**
 * Every TypeScript block in the README and the guide compiles against the
 * package as it is published. A block without an import is a fragment: it gets
 * the names that the pages use throughout, in a scope of its own.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { ROOT, files, lineAt } from "./sources.js";

interface Snippet {
  readonly where: string;
  readonly file: string;
  readonly code: string;
}

const PRELUDE = `import type { Election, Term, Backend } from "conclave";
declare const election: Election; declare const term: Term; declare const backend: Backend;
declare const signal: AbortSignal; declare function doWork(signal: AbortSignal): Promise<void>;
export {}; void [election, term, backend, signal, doWork];
`;

function snippets(page: string): Snippet[] {
  const text = readFileSync(join(ROOT, page), "utf8");
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map((match) => {
    const line = lineAt(text, match.index);
    const code = match[1] ?? "";
    return {
      where: `${page}:${line}`,
      file: `${page.replaceAll(/[^a-zA-Z0-9]/g, "-")}-${line}.ts`,
      code: /^import /m.test(code) ? code : `${PRELUDE}{\n${code}}\n`,
    };
  });
}

const FOLDER = join(ROOT, "artifacts/snippets");
const pages = ["README.md", ...files("docs", ".md")].filter((page) => existsSync(join(ROOT, page)));
const all = pages.flatMap(snippets);

function compile(): string {
  try {
    execFileSync(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", FOLDER], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
    return "";
  } catch (error) {
    return String((error as { stdout?: unknown }).stdout);
  }
}

describe("snippets in the documentation", () => {
  let complaints = "";

  beforeAll(() => {
    rmSync(FOLDER, { recursive: true, force: true });
    mkdirSync(FOLDER, { recursive: true });
    const config = {
      extends: "../../tsconfig.json",
      compilerOptions: { noEmit: true, rootDir: "../..", noUnusedLocals: false, noUnusedParameters: false },
      include: ["."],
    };
    writeFileSync(join(FOLDER, "tsconfig.json"), JSON.stringify(config));
    for (const snippet of all) writeFileSync(join(FOLDER, snippet.file), snippet.code);
    complaints = compile();
  });

  it("are there", () => {
    expect(all.some((snippet) => snippet.where.startsWith("README.md"))).toBe(true);
  });

  it.each(all)("$where compiles", ({ file }) => {
    expect(complaints.split("\n").filter((line) => line.includes(file))).toEqual([]);
  });

  it("nothing else went wrong while compiling", () => {
    expect(complaints).toBe("");
  });
});
