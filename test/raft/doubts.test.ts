/** What works and is not what was meant is said, once. */
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { doubtOfDirectory } from "../../src/backends/raft/doubts.js";
import { raftBackend } from "../../src/backends/raft/index.js";
import { KEY } from "../support/raft-cluster.js";
import { freePorts } from "../support/free-ports.js";

const SHM = "/dev/shm";

/** What a voter says in its first moments; the others are not there. */
async function said(parent: string, mode: number): Promise<string[]> {
  const directory = mkdtempSync(join(parent, "conclave-doubts-"));
  const lines: string[] = [];
  try {
    const keyFile = join(directory, "key");
    writeFileSync(keyFile, KEY);
    chmodSync(keyFile, mode);
    const peers = (await freePorts(3)).map((port, index) => `n${index + 1}@127.0.0.1:${port}`);
    const options = { peers, self: "n1", dir: join(directory, "n1"), keyFile };
    await using backend = raftBackend({ ...options, log: (line) => lines.push(line) });
    const signal = AbortSignal.abort();
    await backend.list!({ signal: new AbortController().signal }).catch(() => {});
    await backend.list!({ signal }).catch(() => {});
    return lines.filter((line) => !line.includes("waits for"));
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
  }
}

it("a key file that every user may read", async () => {
  expect(await said(tmpdir(), 0o644)).toContainEqual(
    expect.stringMatching(/^voter "n1": the key file .* chmod 600$/),
  );
  expect((await said(tmpdir(), 0o640)).join()).not.toContain("key file");
});

it.skipIf(!existsSync(SHM))("a directory in memory", async () => {
  const lines = await said(SHM, 0o600);
  expect(lines).toEqual([expect.stringMatching(/^voter "n1": dir=\/dev\/shm\/.* is in memory \(tmpfs\)/)]);
});

it("a directory on a disk, or one that nothing is known of", async () => {
  expect(await doubtOfDirectory("/x", async () => 0xef53)).toBeUndefined();
  expect(await doubtOfDirectory("/x", async () => Promise.reject(new Error("ENOSYS")))).toBeUndefined();
  expect(await doubtOfDirectory("/x", async () => 0x01021994)).toContain("tmpfs");
});
