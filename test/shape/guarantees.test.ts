/** The table of promises says what the backends declare, and no backend is left out. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { guaranteesPage } from "../../scripts/guarantees-page.js";
import { backendCatalogue } from "../../scripts/catalogue.js";
import { ROOT } from "./sources.js";

describe("docs/guarantees.md", () => {
  it("is up to date (npm run guarantees)", () => {
    expect(readFileSync(join(ROOT, "docs/guarantees.md"), "utf8")).toBe(guaranteesPage(backendCatalogue));
  });

  it("has every room of src/backends", () => {
    const rooms = readdirSync(join(ROOT, "src/backends"), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
    expect(backendCatalogue.map((row) => row.name).toSorted()).toEqual(rooms.toSorted());
  });
});
