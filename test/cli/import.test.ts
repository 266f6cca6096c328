/** A backend that somebody else wrote, on the command line: `--import` loads the module that registers its scheme. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startStore } from "../../examples/custom-backend/server.js";
import type { StoreServer } from "../../examples/custom-backend/server.js";
import { ROOT } from "../shape/sources.js";
import { Cli, conclave, scratch } from "./process.js";

const MODULE = join(ROOT, ".build/examples/custom-backend/backend.js");

describe("conclave --import", () => {
  let store: StoreServer;
  beforeAll(async () => void (store = await startStore()));
  afterAll(() => store[Symbol.asyncDispose]());

  it("elects on a store whose scheme a module registers", async () => {
    const at = ["--import", MODULE, "--backend", `etag://127.0.0.1:${store.port}`];
    const cli = new Cli(["run", "x", "--id", "a", "--log", "json", ...at]);
    const { candidate, token } = await cli.event("elected");
    const leader = await conclave(["leader", "x", "--json", ...at]);
    expect(leader).toMatchObject({ code: 0, err: "" });
    expect(JSON.parse(leader.out)).toMatchObject({ candidate, token });
    cli.kill("SIGTERM");
    expect(await cli.exit).toEqual({ code: 0, signal: null });
  });

  it("says what is wrong with a module, and knows no scheme without it", async () => {
    const broken = join(scratch(), "broken.mjs");
    writeFileSync(broken, 'throw new Error("no driver installed");\n');
    const url = `etag://127.0.0.1:${store.port}`;
    const bad = await conclave(["leader", "x", "--import", broken, "--backend", url]);
    expect(bad.code).toBe(2);
    expect(bad.err).toContain(`--import ${broken}: no driver installed`);
    const missing = await conclave(["leader", "x", "--import", "no-such-package-at-all", "--backend", url]);
    expect(missing.code).toBe(2);
    expect(missing.err).toContain("no-such-package-at-all");
    const unknown = await conclave(["leader", "x", "--backend", url]);
    expect(unknown.code).toBe(2);
    expect(unknown.err).toContain('no backend for "etag:" URLs');
  });
});
