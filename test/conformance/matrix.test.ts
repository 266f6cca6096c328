/** No backend without the suite: a backend that is listed and not tested here fails the build. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { backends } from "../../src/backends/registry.js";
import { ROOT } from "../shape/sources.js";

describe("conformance matrix", () => {
  it.each(backends.map(({ name }) => name))("%s is tested by the suite", (name) => {
    const path = `test/conformance/${name}.test.ts`;
    expect(
      existsSync(join(ROOT, path)),
      `${path} is missing: every backend in src/backends/registry.ts needs it`,
    ).toBe(true);
    expect(readFileSync(join(ROOT, path), "utf8")).toMatch(/\bconformanceSuite\(\{/);
  });
});
