import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, describe, test } from "vitest";
import type { Backend } from "../../src/seam/backend.js";
import type { FileSystem } from "../../src/backends/file/fs.js";
import { fileBackend } from "../../src/backends/file/index.js";
import { nodeFileSystem } from "../../src/backends/file/node-fs.js";
import { conformanceSuite, FaultSwitch } from "../../src/testing/conformance/index.js";
import { startCandidate } from "../support/children.js";

const directory = mkdtempSync(join(tmpdir(), "conclave-conformance-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const faults = new FaultSwitch();

/** A disk that hangs. Slow and deaf are the links alone: they are what takes effect. */
function faulty(real: FileSystem): FileSystem {
  const calm = <T>(call: () => Promise<T>): Promise<T> =>
    faults.state === "cut" || faults.state === "hole" ? faults.pass(call) : call();
  return {
    list: (path) => calm(() => real.list(path)),
    assertDirectory: (path) => calm(() => real.assertDirectory(path)),
    mark: (path) => calm(() => real.mark(path)),
    rewrite: (path, data, durable) => calm(() => real.rewrite(path, data, durable)),
    rename: (from, to) => calm(() => real.rename(from, to)),
    read: (path, limit) => calm(() => real.read(path, limit)),
    create: (path, data, durable) => calm(() => real.create(path, data, durable)),
    link: (from, to) => faults.pass(() => real.link(from, to)),
    syncDirectory: (path) => calm(() => real.syncDirectory(path)),
    remove: (path) => calm(() => real.remove(path)),
    makeDirectory: (path) => calm(() => real.makeDirectory(path)),
    watch: (path, wake, signal) => real.watch(path, wake, signal),
  };
}

/** Somebody cleans up: what is in the directory goes, the directory stays. */
function forget(): void {
  for (const name of readdirSync(directory)) rmSync(join(directory, name), { recursive: true, force: true });
}

describe("file", () => {
  conformanceSuite({
    runner: { describe, test, skip: test.skip },
    backend: async (): Promise<Backend> => fileBackend({ directory, fs: faulty(nodeFileSystem) }),
    faults: {
      cut: () => faults.cut(),
      deafen: (start) => faults.deafen(start),
      slow: (delayMs) => faults.slow(delayMs),
      blackHole: () => faults.blackHole(),
      heal: () => faults.heal(),
      forget: () => forget(),
    },
    skips: [{ test: "a store whose clock jumps", reason: "candidates time the lease by their own clocks" }],
    child: ({ election, ttlMs }) => startCandidate({ url: pathToFileURL(directory).href, election, ttlMs }),
  });
});
