/** The table of promises says what the backends declare, and no backend is left out. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { guaranteesPage } from "../../scripts/guarantees-page.js";
import { backends } from "../../src/backends/registry.js";
import { ROOT } from "./sources.js";

describe("docs/guarantees.md", () => {
  it("is up to date (npm run guarantees)", async () => {
    expect(readFileSync(join(ROOT, "docs/guarantees.md"), "utf8")).toBe(await guaranteesPage(backends));
  });

  it("has every folder of src/backends", () => {
    const built = readdirSync(join(ROOT, "src/backends")).filter((name) =>
      existsSync(join(ROOT, "src/backends", name, "index.ts")),
    );
    expect(backends.map(({ name }) => name).toSorted()).toEqual(built.toSorted());
  });
});
