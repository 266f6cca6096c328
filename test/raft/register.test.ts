/** Registers over acceptors in memory: minorities, half-written values, and many who write at once with lost messages. */
import { describe, expect, it } from "vitest";
import { Proposer } from "../../src/backends/raft/proposer.js";
import type { Acceptors } from "../../src/backends/raft/proposer.js";
import { Acceptor } from "../../src/backends/raft/register.js";
import { systemClock } from "../../src/kit/clock.js";
import { StopSource } from "../../src/kit/stop.js";
import { clockAhead } from "../support/clock-ahead.js";

const NAMES = ["n1", "n2", "n3"];
const never = new StopSource();

class Table {
  readonly acceptors = new Map(NAMES.map((name) => [name, new Acceptor([])]));
  down = new Set<string>();
  lossy = 0;
  seed = BigInt(Date.now());
  /** How far the clock of each voter is ahead. */
  readonly ahead = new Map<string, number>();

  proposer(self: string): Proposer {
    const acceptors: Acceptors = {
      names: NAMES,
      ask: async (voter, request) => {
        const lost = (): boolean => voter !== self && Math.random() < this.lossy;
        if (this.down.has(voter) || lost()) throw new Error("request lost");
        await new Promise((resolve) => setTimeout(resolve, this.lossy * 3 * Math.random()));
        const { answer } = this.acceptors
          .get(voter)!
          .handle(request, systemClock.wall() + (this.ahead.get(voter) ?? 0));
        if (lost()) throw new Error("answer lost");
        return answer;
      },
    };
    const seed = (): bigint => this.seed;
    return new Proposer({
      acceptors,
      self,
      clock: clockAhead(this.ahead.get(self) ?? 0),
      seed,
      limitMs: 100,
    });
  }
}

describe("registers", () => {
  it("are written on the version that was read, and on no other", async () => {
    const table = new Table();
    const [a, b] = [table.proposer("n1"), table.proposer("n2")];
    expect(await a.read("k", never)).toBeNull();
    const first = await a.write("k", null, "one", never);
    expect(await b.write("k", null, "two", never)).toBeNull();
    const second = await b.write("k", first!.version, "two", never);
    expect(second!.version > first!.version).toBe(true);
    expect(await a.write("k", first!.version, "three", never)).toBeNull();
    expect(await a.read("k", never)).toMatchObject({ version: second!.version, text: "two" });
  });

  it("work with a minority down, and throw without a majority", async () => {
    const table = new Table();
    table.down.add("n3");
    const written = await table.proposer("n1").write("k", null, "x", never);
    expect(written).not.toBeNull();
    table.down.add("n2");
    await expect(table.proposer("n1").write("k", written!.version, "y", never)).rejects.toThrow(/majority/);
    await expect(table.proposer("n1").read("k", never)).rejects.toThrow(/majority/);
  });

  it("a value that only a minority has accepted is finished before it is shown, and keeps its version", async () => {
    const table = new Table();
    const first = await table.proposer("n1").write("k", null, "one", never);
    const ballot = first!.version + 65_536n;
    const value = { version: ballot, base: first!.version, text: "half" };
    table.acceptors.get("n3")!.handle({ kind: "accept", key: "k", ballot, value }, systemClock.wall());
    const shown = await table.proposer("n1").read("k", never);
    if (shown!.text === "half") {
      expect(shown!.version).toBe(ballot);
      const accepted = [...table.acceptors.values()].filter(
        (one) => one.records()[0]!.accepted?.text === "half",
      );
      expect(accepted.length).toBeGreaterThanOrEqual(2);
    } else expect(shown).toMatchObject({ version: first!.version, text: "one" });
    // With n1 away, n3's value is met for certain.
    table.down.add("n1");
    const met = await table.proposer("n2").read("k", never);
    expect(met).toMatchObject({ version: ballot, text: "half" });
    expect(table.acceptors.get("n2")!.records()[0]!.accepted!.version).toBe(ballot);
  });

  it("a voter whose clock was years ahead writes, and leaves nothing behind that others cannot surpass", async () => {
    const table = new Table();
    table.ahead.set("n1", 10 * 365 * 86_400_000);
    const first = await table.proposer("n1").write("k", null, "one", never);
    table.ahead.clear();
    const second = await table.proposer("n1").write("k", first!.version, "two", never);
    table.down.add("n3");
    expect(await table.proposer("n2").write("k", second!.version, "three", never)).not.toBeNull();
  });

  it("ballots begin at the seed, however far ahead of all clocks it is", async () => {
    const table = new Table();
    table.seed = BigInt(Date.now()) + 10n * 365n * 86_400_000n;
    for (const name of NAMES) table.acceptors.set(name, new Acceptor([], table.seed));
    expect((await table.proposer("n2").write("k", null, "one", never))!.version >> 16n).toBe(table.seed);
  });

  it("a ballot from the far future is refused", () => {
    const acceptor = new Acceptor([]);
    const far = acceptor.handle({ kind: "prepare", key: "k", ballot: 2n ** 80n }, systemClock.wall());
    expect(far.answer.yes).toBe(false);
    expect(far.persist).toBeUndefined();
    expect(acceptor.promised("k")).toBe(0n);
  });

  it("many count at once while messages get lost: nobody's mark is lost or doubled", async () => {
    const table = new Table();
    await table.proposer("n1").write("k", null, "all", never);
    table.lossy = 0.1;
    const marks = NAMES.flatMap((name) =>
      Array.from({ length: 8 }, (_, i) => ({ name, mark: `${name}.${i}` })),
    );
    const until = Date.now() + 40_000;
    await Promise.all(
      NAMES.map(async (name) => {
        const proposer = table.proposer(name);
        for (const { mark } of marks.filter((one) => one.name === name)) {
          for (;;) {
            if (Date.now() > until) throw new Error("too slow");
            const read = await proposer.read("k", never).catch(() => null);
            if (read === null) continue;
            if (read.text.split(" ").includes(mark)) break;
            const written = await proposer
              .write("k", read.version, `${read.text} ${mark}`, never)
              .catch(() => null);
            if (written !== null) break;
          }
        }
      }),
    );
    table.lossy = 0;
    const { text } = (await table.proposer("n1").read("k", never))!;
    expect(text.split(" ").slice(1).sort()).toEqual(marks.map(({ mark }) => mark).sort());
  }, 60_000);
});
