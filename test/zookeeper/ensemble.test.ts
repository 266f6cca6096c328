/**
 * Faults in an ensemble of three. CONCLAVE_LONG=1 runs the long form: as many
 * rounds as the promise was made for, and prints what was seen.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { zookeeperBackend } from "../../src/backends/zookeeper/index.js";
import { Election } from "../../src/index.js";
import { Contest } from "../support/contest.js";
import { until } from "../support/until.js";
import { hasZooKeeper, ZooKeeperServer } from "../support/zookeeper-server.js";

const LONG = process.env["CONCLAVE_LONG"] === "1";
const KILLS = LONG ? 20 : 1;
const STOPS = LONG ? 10 : 1;
const TTL_MS = 4_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.skipIf(!hasZooKeeper())("ZooKeeper: faults, ensemble of three", () => {
  let server: ZooKeeperServer;
  let elections: Election[];
  let contest: Contest;

  beforeAll(async () => {
    server = await ZooKeeperServer.start({ members: 3 });
  }, 120_000);
  beforeEach(({ task }) => {
    elections = [1, 2, 3].map(
      () =>
        new Election({
          name: `faults/${task.id}`,
          backend: zookeeperBackend({ hosts: server.hosts, tickMs: server.tickMs, env: {}, warn: () => {} }),
          ...{ ttlMs: TTL_MS, closeBackend: true },
        }),
    );
    contest = new Contest(elections);
  });
  afterEach(async () => {
    await contest.end();
    await Promise.all(elections.map((election) => election.close()));
  });
  afterAll(() => server?.stop());

  /** At most one change of leader, a leader again soon, no overlap, and tokens that rise. */
  async function round(fault: () => Promise<void>): Promise<void> {
    await until(() => contest.leader !== undefined, 60_000);
    const before = contest.tokens.length;
    await fault();
    await until(() => contest.leader !== undefined, 60_000);
    await pause(500);
    expect(contest.tokens.length - before, contest.history.slice(-12).join("\n")).toBeLessThanOrEqual(1);
    expect(contest.overlaps).toBe(0);
    expect(contest.tokens).toEqual(contest.tokens.toSorted((a, b) => (a < b ? -1 : 1)));
  }

  function report(what: string): void {
    if (!LONG) return;
    const { tokens, overlaps, longestGapMs } = contest;
    console.log(
      `${what}: ${tokens.length - 1} changes, ${overlaps} overlaps, ${Math.round(longestGapMs)} ms without a leader at most`,
    );
  }

  it(`the ensemble's leader is killed ${KILLS} times`, { timeout: 60_000 + KILLS * 60_000 }, async () => {
    for (let i = 0; i < KILLS; i++) {
      await round(async () => {
        const leader = await server.leader();
        await leader.kill();
        await pause(2_000);
        leader.start();
        await server.ready();
      });
    }
    report("leader killed");
  });

  it(`a server is stopped and woken ${STOPS} times`, { timeout: 60_000 + STOPS * 60_000 }, async () => {
    for (let i = 0; i < STOPS; i++) {
      await round(async () => {
        const member = server.members[i % 3]!;
        member.signal("SIGSTOP");
        await pause(6_000);
        member.signal("SIGCONT");
        await server.ready();
      });
    }
    report("server stopped");
  });

  it(
    "a rolling restart moves sessions from server to server, and ends no term",
    { timeout: 240_000 },
    async () => {
      for (const member of server.members) {
        await round(async () => {
          await member.kill();
          member.start();
          await server.ready();
        });
      }
      report("rolling restart");
    },
  );

  it(
    "an ensemble that lost its disks: nobody leads with a lower token, loudly",
    { timeout: 240_000 },
    async () => {
      await until(() => contest.leader !== undefined, 60_000);
      const highest = contest.tokens.at(-1)!;
      // A candidate that has seen no token cannot miss it: all of them know this one before it is forgotten.
      for (const election of elections) expect((await election.leader())?.token).toBe(highest);
      const refusals: string[] = [];
      for (const election of elections)
        election.on("error", ({ error }) => {
          if (error instanceof Error && "code" in error && error.code === "token-regression")
            refusals.push(error.message);
        });
      await Promise.all(server.members.map((member) => member.kill()));
      await Promise.all(server.members.map((member) => member.wipe()));
      for (const member of server.members) member.start();
      await server.ready();
      await until(() => refusals.length > 0 || contest.tokens.at(-1)! > highest, 120_000);
      expect(contest.tokens.every((token) => token >= contest.tokens[0]!)).toBe(true);
      expect(contest.overlaps).toBe(0);
      report("disks lost");
    },
  );
});
