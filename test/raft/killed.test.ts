/**
 * A voter that is killed at any write, sync or rename of its journal, or whose
 * disk fails there, never votes twice in one term: its next life is asked for
 * the same terms with other bids. CONCLAVE_LONG=1: every call, over 200 faults; else some.
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
const STEP = LONG ? 1 : 9;
const TERMS = 32;
const PROGRAM = join(ROOT, ".build/test/raft/programs/voter.js");

interface Point {
  /** The call at which it happens, and the how many-th of its kind. */
  readonly call: string;
  readonly nth: number;
  readonly fault: "signal=SIGKILL" | "error=EIO";
  /** Whether the voter has voted in an earlier life. */
  readonly past: boolean;
}

/** Without a past: the first record is a file put in place; then each is a write and a sync. */
const CALLS = { write: TERMS, fsync: 2, fdatasync: TERMS - 1, rename: 1 };

const points: Point[] = [false, true].flatMap((past) =>
  (["signal=SIGKILL", "error=EIO"] as const).flatMap((fault) =>
    Object.entries(CALLS).flatMap(([call, count]) =>
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
  it("never votes twice in one term", { timeout: 600_000 }, async () => {
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
    // With a past there are fewer calls: the last points are beyond the end of that life.
    expect(count("done")).toBeLessThan(ends.length / 2);
    expect(count("killed")).toBeGreaterThan(0);
    expect(count("failed")).toBeGreaterThan(0);
  });
});
