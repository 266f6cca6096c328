import { readdirSync } from "node:fs";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fileBackend } from "../../src/backends/file/index.js";
import type { Leader } from "../../src/seam/backend.js";
import { Election } from "../../src/election/election.js";
import type { Term } from "../../src/api/term.js";
import { open, recordsOf, tempDirectory } from "./support.js";

const TIMING = { ttlMs: 4000, retryMs: 400 };
/** So slow that only a watch can be fast. */
const SLOW = { ttlMs: 20_000, retryMs: 8000 };
const SOON_MS = 3000;

function candidate(directory: string, id: string, timing: object = TIMING): Election {
  return new Election({ name: "a", id, backend: fileBackend({ directory }), closeBackend: true, ...timing });
}

describe("an election on files", () => {
  it("has one leader, hands over at once, and its tokens rise", async () => {
    const directory = await tempDirectory();
    const [one, two] = [candidate(directory, "one", SLOW), candidate(directory, "two", SLOW)];
    const first = await one.campaign();
    expect(await two.tryCampaign()).toBeNull();
    expect(await two.leader()).toMatchObject({ candidate: one.candidate, token: first.token });
    const waiting = two.campaign();
    await new Promise((resolve) => setTimeout(resolve, 100));
    const started = performance.now();
    await first.resign();
    const second = await waiting;
    expect(performance.now() - started).toBeLessThan(SOON_MS); // the watch, not the poll
    expect(second.token).toBeGreaterThan(first.token);
    expect(first.held).toBe(false);
    await Promise.all([one.close(), two.close()]);
    const last = candidate(directory, "three");
    expect(await last.leader()).toBeNull();
    await last.close();
  });

  it("keeps its leader over many renewals, and its directory small", async () => {
    const directory = await tempDirectory();
    const one = candidate(directory, "one", { ttlMs: 10_000, renewMs: 40 });
    const two = candidate(directory, "two", { ttlMs: 10_000, renewMs: 40 });
    const term = await one.campaign();
    await new Promise((resolve) => setTimeout(resolve, 1200));
    expect(term.held).toBe(true);
    expect(await two.tryCampaign()).toBeNull();
    expect((await readdir(recordsOf(directory, "a"))).length).toBeLessThanOrEqual(18);
    await term.proclaim("http://here");
    expect(await two.leader()).toMatchObject({ value: "http://here", token: term.token });
    await Promise.all([one.close(), two.close()]);
  });

  it("ends the term of a leader whose directory is wiped, and never gives its token again", async () => {
    const directory = await tempDirectory();
    const [one, two] = [candidate(directory, "one"), candidate(directory, "two")];
    const term = await one.campaign();
    await rm(join(directory, "elections"), { recursive: true });
    const { reason } = await term.ended;
    expect(["revoked", "expired"]).toContain(reason);
    const next = await two.campaign();
    expect(next.token).toBeGreaterThan(term.token);
    await Promise.all([one.close(), two.close()]);
  });

  it("is observed as it changes", async () => {
    const directory = await tempDirectory();
    const [one, watcher] = [candidate(directory, "one"), candidate(directory, "watcher")];
    const seen: (Leader | null)[] = [];
    let campaign: Promise<Term> | undefined;
    for await (const leader of watcher.observe()) {
      seen.push(leader);
      if (seen.length === 1) campaign = one.campaign();
      if (seen.length === 2) void (await campaign)?.resign();
      if (seen.length === 3) break;
    }
    expect(seen.map((leader) => leader?.candidate ?? null)).toEqual([null, one.candidate, null]);
    await Promise.all([one.close(), watcher.close()]);
  });

  it("says in its files who leads, in words people can read", async () => {
    const directory = await tempDirectory();
    const one = candidate(directory, "one");
    const term = await one.campaign();
    const text = await readFile(join(recordsOf(directory, "a"), "first"), "utf8");
    const [header, record] = text.split("\n", 2).map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(header).toMatchObject({ v: 1, number: term.token.toString() });
    if (process.platform === "linux")
      expect(header).toMatchObject({ host: { processes: [{ pid: process.pid }] } });
    expect(record).toMatchObject({ v: 1, ttlMs: 4000, holder: one.candidate });
    await one.close();
  });

  it("lets one process hold many elections, and candidates of one process stand against each other", async () => {
    const directory = await tempDirectory();
    const backend = fileBackend({ directory });
    const names = ["a", "A", "b/c", "b", "…"];
    const elections = names.flatMap((name) =>
      ["x", "y"].map((id) => new Election({ name, id, backend, ...SLOW })),
    );
    const terms = await Promise.all(elections.map((election) => election.tryCampaign()));
    expect(terms.filter((term) => term !== null)).toHaveLength(names.length);
    const waiting = elections.filter((_, i) => terms[i] === null).map((election) => election.campaign());
    const started = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (const term of terms) await term?.resign();
    await Promise.all(waiting);
    expect(performance.now() - started).toBeLessThan(SOON_MS); // woken within one process too
    await Promise.all(elections.map((election) => election.close()));
    await backend[Symbol.asyncDispose]();
  });

  it("keeps durable records beside the leases, on the same terms", async () => {
    const directory = await tempDirectory();
    await using backend = fileBackend({ directory });
    const { records } = backend;
    const one = await records.write("a", null, "slot 1", open);
    expect(await records.write("a", null, "slot 1 again", open)).toBeNull();
    expect(await records.write("a", one!.version, "slot 2", open)).not.toBeNull();
    expect(await records.read("a", open)).toMatchObject({ record: "slot 2" });
    expect((await readdir(directory)).sort()).toEqual(["records", "staging"]);
  });
});

describe("afterwards", () => {
  it("a hundred open and closed elections leave no file, watch or timer open", async () => {
    const directory = await tempDirectory();
    const cycle = async (i: number): Promise<void> => {
      const one = candidate(directory, `one-${i}`);
      const two = candidate(directory, `two-${i}`);
      await one.campaign();
      const waiting = two.campaign();
      const off = two.on("leader", () => {});
      await one.close();
      await waiting;
      off();
      await two.close();
    };
    const idle = async (): Promise<{ files: number; resources: number }> => {
      await new Promise((resolve) => setTimeout(resolve, 100));
      return {
        files: process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0,
        resources: process.getActiveResourcesInfo().length,
      };
    };
    await cycle(0);
    const before = await idle();
    for (let i = 1; i <= 100; i++) await cycle(i);
    const after = await idle();
    expect(after.files).toBeLessThanOrEqual(before.files);
    expect(after.resources).toBeLessThanOrEqual(before.resources);
  });
});
