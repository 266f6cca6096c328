/** Node takes more than ten listeners on a signal for a leak and says so on stderr: ours must not cause that. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fileBackend } from "../../src/backends/file/index.js";
import { Election, memoryBackend } from "../../src/index.js";

const MANY = 15;

async function warningsDuring(act: () => Promise<void>): Promise<string[]> {
  const warnings: string[] = [];
  const note = (warning: Error): void => void warnings.push(`${warning.name}: ${warning.message}`);
  process.on("warning", note);
  try {
    await act();
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off("warning", note);
  }
  return warnings.filter((text) => text.startsWith("MaxListeners"));
}

test("many may ask one election at once", async () => {
  const warnings = await warningsDuring(async () => {
    await using election = new Election({ name: "e", backend: memoryBackend(), ttlMs: 3000 });
    await Promise.all(Array.from({ length: MANY }, () => election.leader()));
  });
  expect(warnings).toEqual([]);
});

test("much of the work may listen to the signal of its term", async () => {
  const warnings = await warningsDuring(async () => {
    await using election = new Election({ name: "e", backend: memoryBackend(), ttlMs: 3000 });
    const term = await election.campaign();
    for (let i = 0; i < MANY; i++) term.signal.addEventListener("abort", () => {});
  });
  expect(warnings).toEqual([]);
});

test("many elections may wait on one file backend", async () => {
  const directory = await mkdtemp(join(tmpdir(), "conclave-listeners-"));
  try {
    const warnings = await warningsDuring(async () => {
      const backend = fileBackend({ directory });
      const names = Array.from({ length: MANY }, (_, i) => `e${i}`);
      const elections = names.flatMap((name) =>
        [1, 2].map(() => new Election({ name, backend, ttlMs: 5000 })),
      );
      const leading = elections.map((election) => election.campaign().catch(() => null));
      await new Promise((resolve) => setTimeout(resolve, 300));
      await Promise.all(elections.map((election) => election.close()));
      await Promise.all(leading);
      await backend[Symbol.asyncDispose]();
    });
    expect(warnings).toEqual([]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("a signal that is not Node's own is taken as it is", () => {
  const own = globalThis.AbortController;
  class Plain {
    readonly signal = { aborted: false, addEventListener: () => {}, removeEventListener: () => {} };
    abort(): void {}
  }
  // @ts-expect-error -- what jsdom and simulators do
  globalThis.AbortController = Plain;
  try {
    expect(() => new Election({ name: "e", backend: memoryBackend() })).not.toThrow(TypeError);
  } finally {
    globalThis.AbortController = own;
  }
});
