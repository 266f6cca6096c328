/** The directory is replaced while candidates run: by another user, by an older copy, by an empty one. */
import { chmod, chown, cp, mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import type { FileSystem } from "../../src/backends/file/fs.js";
import { GuardedDirectory } from "../../src/backends/file/guarded.js";
import { fileBackend } from "../../src/backends/file/index.js";
import { Election } from "../../src/election/election.js";
import { isConclaveError } from "../../src/kit/errors.js";
import type { TimingOptions } from "../../src/api/options.js";
import { interposed } from "./interposed.js";
import { open, recordsOf, storeIn, tempDirectory, tree } from "./support.js";

const isRoot = process.geteuid?.() === 0;
/** Renewals come every 700 ms; a busy machine may be late by seconds before a term expires. */
const TIMING = { ttlMs: 10_000, renewMs: 700, retryMs: 200, attemptMs: 2_000 };
const PATIENCE = { timeout: 25_000, interval: 20 };

const running: Election[] = [];

// Before the directories are removed: hooks run in the reverse order of their definition.
afterEach(async () => {
  await Promise.all(running.splice(0).map((election) => election.close()));
});

interface Candidate {
  readonly election: Election;
  readonly errors: string[];
  readonly ends: string[];
  readonly tokens: bigint[];
}

/** A candidate that campaigns until the test is over. */
function candidate(directory: string, id: string, timing: TimingOptions = TIMING): Candidate {
  const election = new Election({
    name: "e",
    id,
    backend: fileBackend({ directory, deadProcessRule: false }),
    closeBackend: true,
    ...timing,
  });
  const [errors, ends, tokens]: [string[], string[], bigint[]] = [[], [], []];
  election.on("error", ({ error }) => errors.push(isConclaveError(error) ? error.code : String(error)));
  election.on("elected", ({ term }) => tokens.push(term.token));
  election.on("ended", ({ end }) => ends.push(end.reason));
  void election.run(
    ({ signal }) =>
      new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
  );
  running.push(election);
  return { election, errors, ends, tokens };
}

async function root(): Promise<string> {
  const directory = join(await tempDirectory(), "root");
  await mkdir(directory, { mode: 0o700 });
  return directory;
}

async function leads({ election }: Candidate): Promise<void> {
  await expect.poll(() => election.leading, PATIENCE).toBe(true);
}

/** A file system on which the directory is replaced by a copy of itself, just before the next record is linked. */
function swapped(directory: string): { readonly fs: FileSystem; swap(): void } {
  let asked = false;
  const fs = interposed(async (step) => {
    if (step !== "link" || !asked) return;
    asked = false;
    await cp(directory, `${directory}-copy`, { recursive: true });
    await rename(directory, `${directory}-old`);
    await rename(`${directory}-copy`, directory);
  });
  return { fs, swap: () => void (asked = true) };
}

describe("a directory that is not safe any more", () => {
  it.runIf(isRoot)("is not written to after another user has made it anew", async () => {
    const directory = await root();
    const a = candidate(directory, "a", { ttlMs: 3_000 });
    await leads(a);
    await rm(directory, { recursive: true, maxRetries: 5 });
    await mkdir(directory);
    await chmod(directory, 0o777);
    await chown(directory, 65534, 65534);
    await expect.poll(() => a.ends, PATIENCE).toHaveLength(1);
    await expect.poll(() => a.errors, PATIENCE).toContain("unsupported");
    expect(await readdir(directory)).toEqual([]);
    await rm(directory, { recursive: true });
    await leads(a);
    expect(a.tokens[1]).toBeGreaterThan(a.tokens[0]!);
  });

  it("is refused while others can write to it, and used again when it is mended", async () => {
    const directory = await root();
    const store = storeIn("", { root: new GuardedDirectory({ directory }) });
    const first = await store.write("a", null, "1", open);
    await chmod(directory, 0o777);
    const refused = { code: "unsupported", message: expect.stringContaining("mode 777") };
    await expect(store.write("a", first!.version, "2", open)).rejects.toMatchObject(refused);
    await expect(store.read("a", open)).rejects.toMatchObject(refused);
    await chmod(directory, 0o700);
    expect((await store.write("a", first!.version, "2", open))?.record).toBe("2");
  });

  it("is not trusted for a write during which it was replaced", async () => {
    const directory = await root();
    const { fs, swap } = swapped(directory);
    const store = storeIn("", { fs, root: new GuardedDirectory({ directory }) });
    const first = await store.write("a", null, "1", open);
    swap();
    await expect(store.write("a", first!.version, "2", open)).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("replaced"),
    });
    expect(await store.write("a", first!.version + 1n, "3", open), "it was not read").toBeNull();
    expect((await store.read("a", open))?.version).toBe(first!.version + 1n);
    expect((await store.write("a", first!.version + 1n, "3", open))?.record).toBe("3");
  });

  it("loses no record to a writer that finds it replaced: what is old elsewhere may count here", async () => {
    const directory = await root();
    const { fs, swap } = swapped(directory);
    const store = storeIn("", { fs, root: new GuardedDirectory({ directory }) });
    let entry = await store.write("a", null, "0", open);
    for (let i = 1; i < 20; i++) entry = await store.write("a", entry!.version, `${i}`, open);
    await store[Symbol.asyncDispose](); // what is old has been removed
    const before = await readdir(recordsOf(directory, "a"));
    swap();
    const late = storeIn("", { fs, root: new GuardedDirectory({ directory }) });
    await expect(late.write("a", entry!.version, "late", open)).rejects.toThrow("replaced");
    await late[Symbol.asyncDispose]();
    expect(await readdir(recordsOf(directory, "a"))).toEqual(expect.arrayContaining(before));
  });
});

describe("a directory that was replaced by an older copy", () => {
  /** A leads; a copy was made before the term before, when nobody led. */
  async function scene(): Promise<{ directory: string; a: Candidate; replace: () => Promise<void> }> {
    const directory = await root();
    const backend = fileBackend({ directory });
    const before = new Election({ name: "e", backend, closeBackend: true, ...TIMING });
    await (await before.campaign()).resign();
    await cp(directory, `${directory}-copy`, { recursive: true });
    await (await before.campaign()).resign();
    await before.close();
    const a = candidate(directory, "a");
    await leads(a);
    const replace = async (): Promise<void> => {
      await rename(directory, `${directory}-away`);
      await rename(`${directory}-copy`, directory);
    };
    return { directory, a, replace };
  }

  it("the leader loses its term at the next renewal, not at its deadline", async () => {
    const { a, replace } = await scene();
    await replace();
    await expect.poll(() => a.ends, PATIENCE).toEqual(["revoked"]);
  });

  it("so does one whose directory was covered by an empty one", async () => {
    const { directory, a } = await scene();
    await rename(directory, `${directory}-away`);
    await mkdir(directory, { mode: 0o700 });
    await expect.poll(() => a.ends, PATIENCE).toEqual(["revoked"]);
    // And away again: numbers of the meantime are the clock's, so nobody goes back.
    await leads(a);
    expect(a.tokens[1]).toBeGreaterThan(a.tokens[0]!);
  });

  it("a candidate that waited behind a higher token does not lead with a lower one, and says so", async () => {
    const { directory, a, replace } = await scene();
    const b = candidate(directory, "b");
    const seen: (bigint | undefined)[] = [];
    b.election.on("leader", ({ leader }) => seen.push(leader?.token));
    const [high] = a.tokens;
    await expect.poll(() => seen, PATIENCE).toContain(high);
    // The numbers of a copy that is older by many renewals.
    await expect
      .poll(async () => (await tree(recordsOf(directory, "e"))).length, PATIENCE)
      .toBeGreaterThan(5);
    await replace();
    await expect.poll(() => [...a.errors, ...b.errors], PATIENCE).toContain("token-regression");
    for (const { tokens } of [a, b]) for (const token of tokens) expect(token).toBeGreaterThanOrEqual(high!);
    await expect.poll(() => a.ends, PATIENCE).toEqual(["revoked"]);
    // What an operator does, without restarting anyone: a fresh directory numbers from the clock.
    await rm(recordsOf(directory, "e"), { recursive: true, maxRetries: 5 });
    await expect.poll(() => [a, b].some(({ election }) => election.leading), PATIENCE).toBe(true);
    const newest = [...a.tokens, ...b.tokens].reduce((x, y) => (x > y ? x : y));
    expect(newest).toBeGreaterThan(high!);
    await expect.poll(() => seen.at(-1), PATIENCE).toBe(newest);
  });

  it("an observer is shown the leader of the older copy, after an error", async () => {
    const { directory, a, replace } = await scene();
    const watcher = new Election({
      name: "e",
      backend: fileBackend({ directory }),
      closeBackend: true,
      ...TIMING,
    });
    onTestFinished(() => watcher.close());
    const events: string[] = [];
    watcher.on("error", ({ error }) => events.push(isConclaveError(error) ? error.code : String(error)));
    watcher.on("leader", ({ leader }) => events.push(leader?.candidate.replace(/-.*/, "") ?? "nobody"));
    await expect.poll(() => events, PATIENCE).toEqual(["a"]);
    await a.election.close();
    await expect.poll(() => events, PATIENCE).toEqual(["a", "nobody"]);
    await replace();
    // One that has seen nothing of all this, and may therefore lead.
    const fresh = candidate(directory, "fresh");
    await leads(fresh);
    expect(fresh.tokens[0]).toBeLessThan(a.tokens[0]!);
    await expect.poll(() => events, PATIENCE).toEqual(["a", "nobody", "token-regression", "fresh"]);
    expect((await watcher.leader())?.token).toBe(fresh.tokens[0]);
  });
});
