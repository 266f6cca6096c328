/** A record that was written is still there after one voter lost its disk and came back. */
import { expect, test } from "vitest";
import { beginning } from "../../src/backends/raft/join.js";
import { Proposer } from "../../src/backends/raft/proposer.js";
import { Acceptor } from "../../src/backends/raft/register.js";
import type { RegisterRequest } from "../../src/backends/raft/register.js";
import { systemClock } from "../../src/kit/clock.js";
import { StopSource } from "../../src/kit/stop.js";

test("a record that a majority accepted survives the loss of one disk", async () => {
  const names = ["n1", "n2", "n3"];
  const acceptors = new Map(names.map((name) => [name, new Acceptor([])]));
  const cut = new Set<string>();
  const proposer = (self: string): Proposer =>
    new Proposer({
      self,
      clock: systemClock,
      seed: () => 1n,
      limitMs: 1_000,
      acceptors: {
        names,
        ask: async (voter: string, request: RegisterRequest) => {
          if (cut.has(voter)) throw new Error(`${voter} is cut off`);
          return acceptors.get(voter)!.handle(request, Date.now()).answer;
        },
      },
    });
  cut.add("n3");
  const written = await proposer("n1").write("k", null, "precious", new StopSource());
  expect(written).not.toBeNull();
  // n1 loses its disk and rejoins by the answers of both others.
  const told = ["n2", "n3"].map((name) => ({
    birth: name,
    started: true,
    births: [],
    wall: Date.now(),
    seed: 1n,
    votes: [],
    ballots: acceptors
      .get(name)!
      .records()
      .map(({ key, promised }) => ({ name: key, ballot: promised })),
  }));
  acceptors.set("n1", new Acceptor(beginning("new", Date.now(), told)!.registers));
  // Afterwards n2 is slow: the majority is n1 and n3.
  cut.clear();
  cut.add("n2");
  const read = await proposer("n3")
    .read("k", new StopSource())
    .catch(() => "unknown" as const);
  expect(read).toBe("unknown");
  // With n2 back the record is there, and the next write makes n1 a full acceptor again.
  cut.clear();
  expect((await proposer("n1").read("k", new StopSource()))?.text).toBe("precious");
  expect((await proposer("n1").write("k", written!.version, "newer", new StopSource()))?.text).toBe("newer");
  cut.add("n2");
  expect((await proposer("n3").read("k", new StopSource()))?.text).toBe("newer");
});
