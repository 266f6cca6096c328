/** The public API: reviewed as one page, documented to the last name, usable by a strict consumer. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { apiReport, entriesOf } from "../../scripts/api-report-page.js";
import { ROOT } from "./sources.js";

const entries = entriesOf(readFileSync(join(ROOT, "package.json"), "utf8"));
const report = apiReport(ROOT, entries);

describe("public API", () => {
  it("is the one that docs/api.md shows (npm run api writes it anew)", () => {
    expect(readFileSync(join(ROOT, "docs/api.md"), "utf8")).toBe(report.page);
  });

  it("has a comment for every name, and shows nothing internal", () => {
    expect(report.complaints).toEqual([]);
  });

  it("compiles for a consumer that checks libraries too", () => {
    const folder = mkdtempSync(join(tmpdir(), "conclave-consumer-"));
    try {
      const imports = [...entries.keys()].map((name, i) => `import * as m${i} from "${name}";\nvoid m${i};`);
      writeFileSync(join(folder, "main.ts"), `${imports.join("\n")}\n`);
      const paths = Object.fromEntries([...entries].map(([name, types]) => [name, [join(ROOT, types)]]));
      const compilerOptions = {
        ...{ target: "es2022", lib: ["es2023", "esnext.disposable"], module: "nodenext", strict: true },
        ...{ noEmit: true, skipLibCheck: false, types: ["node"], paths },
        typeRoots: [join(ROOT, "node_modules/@types")],
      };
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["main.ts"] }));
      const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
      execFileSync(process.execPath, [tsc, "-p", folder], { stdio: "pipe", encoding: "utf8" });
    } finally {
      rmSync(folder, { recursive: true });
    }
  }, 60_000);
});
