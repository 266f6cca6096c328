/**
 * A voter that is killed at any write, sync or rename of its journal, or whose
 * disk fails there, never votes twice in one term: its next life is asked for
 * the same terms with other bids. CONCLAVE_LONG=1: every call, over 200 kills and
 * as many errors; else some.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { pooled } from "../file/children.js";
import { ROOT } from "../shape/sources.js";

const LONG = process.env["CONCLAVE_LONG"] === "1";
const STEP = LONG ? 1 : 13;
const TERMS = 64;
const PROGRAM = join(ROOT, ".build/test/raft/programs/voter.js");

interface Point {
  /** The call at which it happens, and the how many-th of its kind. */
  readonly call: string;
  readonly nth: number;
  readonly fault: "signal=SIGKILL" | "error=EIO";
  /** Whether the voter has voted in an earlier life. */
  readonly past: boolean;
}

/**
 * How often a life does what. A journal that is put in place, at the first vote or
 * at the start of a voter with a past, is a write, a sync of the file, a rename
 * and a sync of the directory; a vote is a write and a sync. A journal over 1 MiB
 * is put in place anew: after 27 of these votes, or 22 on top of what the past left.
 */
const CALLS = {
  first: { write: TERMS, fsync: 6, fdatasync: TERMS - 3, rename: 3 },
  second: { write: TERMS / 2 + 2, fsync: 4, fdatasync: TERMS / 2, rename: 2 },
};

const points: Point[] = [false, true].flatMap((past) =>
  (["signal=SIGKILL", "error=EIO"] as const).flatMap((fault) =>
    Object.entries(past ? CALLS.second : CALLS.first).flatMap(([call, count]) =>
      Array.from({ length: count }, (_, i) => ({ call, nth: i + 1, fault, past })),
    ),
  ),
);

const trace = (directory: string): string[] =>
  ["journal", "journal.new", ""].flatMap((name) => ["-P", join(directory, name)]);

interface Life {
  readonly yes: readonly string[];
  readonly ended: "done" | "killed" | "failed";
}

/** One life of the voter; `point`: what befalls it. */
async function live(directory: string, name: string, point?: Point): Promise<Life> {
  const node = [process.execPath, PROGRAM, directory, name, String(TERMS)];
  const inject = point && `inject=${point.call}:${point.fault}:when=${point.nth}`;
  const [command = "", ...args] =
    inject === undefined
      ? node
      : ["strace", "-f", "-qq", "-o", "/dev/null", ...trace(directory), "-e", inject, ...node];
  // One thread does the file's work: strace counts calls for each thread.
  const env = { ...process.env, UV_THREADPOOL_SIZE: "1" };
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "ignore"], env });
  const [output, [code, signal]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  const yes = output.split("\n").filter((line) => line.startsWith("yes "));
  return { yes, ended: signal !== null || code === 137 ? "killed" : code === 0 ? "done" : "failed" };
}

/** Votes of all lives, by term. */
function votesOf(lives: readonly Life[]): Map<string, Set<string>> {
  const votes = new Map<string, Set<string>>();
  for (const line of lives.flatMap(({ yes }) => yes)) {
    const [, term = "", bid = ""] = line.split(" ");
    votes.set(term, (votes.get(term) ?? new Set()).add(bid));
  }
  return votes;
}

const canTrace = (): boolean => spawnSync("strace", ["-qq", "-o", "/dev/null", "true"]).status === 0;

describe.skipIf(!canTrace())("a voter that dies, or whose disk fails, at a call of its journal", () => {
  it("never votes twice in one term", { timeout: 900_000 }, async () => {
    const chosen = points.filter((_, index) => index % STEP === 0);
    const tasks = chosen.map((point) => async () => {
      const directory = await mkdtemp(join(tmpdir(), "conclave-voter-"));
      try {
        const what = JSON.stringify(point);
        const lives: Life[] = [];
        if (point.past) {
          // Half a life before: some of the terms are taken.
          const early = { call: "write", nth: TERMS / 2, fault: "signal=SIGKILL", past: false } as const;
          lives.push(await live(directory, "early", early));
          expect(lives[0], what).toMatchObject({ ended: "killed" });
        }
        const struck = await live(directory, "struck", point);
        lives.push(struck, await live(directory, "heir"));
        expect(lives.at(-1)!.ended, what).toBe("done");
        for (const [term, bids] of votesOf(lives)) expect([...bids], `${what}, term ${term}`).toHaveLength(1);
        return struck.ended;
      } finally {
        await rm(directory, { recursive: true, force: true });
      }
    });
    const ends = await pooled(LONG ? 4 : 2, tasks);
    const count = (end: Life["ended"]): number => ends.filter((each) => each === end).length;
    console.log(`${ends.length} faults: ${count("killed")} killed, ${count("failed")} stopped by EIO`);
    // All of them struck: the counts above are those of the code.
    expect(count("done")).toBe(0);
    expect(count("killed")).toBeGreaterThan(LONG ? 200 : 0);
    expect(count("failed")).toBeGreaterThan(LONG ? 200 : 0);
  });
});
