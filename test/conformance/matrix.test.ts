/** No room without the suite: a backend that is listed and not tested here fails the build. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { rooms } from "../../src/open.js";
import { ROOT } from "../shape/sources.js";

describe("conformance matrix", () => {
  it.each(rooms.map(({ name }) => name))("%s is tested by the suite", (name) => {
    const path = `test/conformance/${name}.test.ts`;
    expect(existsSync(join(ROOT, path)), `${path} is missing: every room in src/open.ts needs it`).toBe(true);
    expect(readFileSync(join(ROOT, path), "utf8")).toMatch(/\bconformanceSuite\(\{/);
  });
});
