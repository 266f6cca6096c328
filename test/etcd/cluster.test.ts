/**
 * Faults in a cluster of three. CONCLAVE_LONG=1 runs the long form: as many
 * rounds as the promise was made for, and prints what was seen.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Bench, type Contest, TTL } from "../support/contest.js";
import { EtcdServer, hasEtcd, type EtcdMember } from "../support/etcd-server.js";
import { until } from "../support/until.js";

const LONG = process.env["CONCLAVE_LONG"] === "1";
const KILLS = LONG ? 20 : 2;
const STOPS = LONG ? 10 : 1;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const bench = new Bench();

describe.skipIf(!hasEtcd())("etcd: faults, three members", () => {
  let server: EtcdServer;
  let faults = 0;
  let mostChanges = 0;

  beforeAll(async () => {
    server = await EtcdServer.start({ members: 3 });
  });
  beforeEach(() => {
    faults = 0;
    mostChanges = 0;
  });
  afterEach(() => bench.cleanUp());
  afterAll(() => server.stop());

  /**
   * One fault: at most one change of leader, and a leader again within three ttls. With `removing`, terms whose live
   * lease etcd itself revoked are etcd's own faults, each with a change of its own.
   */
  async function round(
    contest: Contest,
    fault: (member: EtcdMember) => Promise<void>,
    { removing = false } = {},
  ): Promise<void> {
    await until(() => contest.leader !== undefined, 3 * TTL);
    const before = contest.tokens.length;
    const revokedBefore = contest.revoked;
    contest.history.push(`${Math.round(performance.now())} ms: fault ${++faults}`);
    const member = await server.leader();
    await fault(member);
    await until(() => contest.leader !== undefined, 3 * TTL);
    await pause(500);
    const changes = contest.tokens.length - before;
    mostChanges = Math.max(mostChanges, changes);
    const allowed = removing ? Math.max(1, contest.revoked - revokedBefore) : 1;
    expect(changes, contest.history.slice(-12).join("\n")).toBeLessThanOrEqual(allowed);
    expect(contest.overlaps).toBe(0);
  }

  /** Nobody is stuck: whoever leads steps down, until each has led. Then the books are closed. */
  async function close(what: string, contest: Contest): Promise<void> {
    const { longestGapMs, tokens } = contest;
    const changes = tokens.length - 1;
    const revoked = contest.revoked;
    const led = new Set<unknown>();
    const end = performance.now() + 6 * TTL;
    while (led.size < contest.elections.length && performance.now() < end) {
      await until(() => contest.leader !== undefined, 3 * TTL);
      const leader = contest.leader;
      led.add(leader);
      await leader?.term?.resign();
    }
    await contest.end();
    expect(led.size).toBe(contest.elections.length);
    expect(longestGapMs).toBeLessThan(3 * TTL);
    expect(tokens).toEqual([...tokens].sort((x, y) => (x < y ? -1 : 1)));
    if (!LONG) return;
    console.log(
      `${what}: ${faults} faults, ${changes} changes of leader, at most ${mostChanges} for one fault; ` +
        `longest time without a leader ${Math.round(longestGapMs)} ms; overlaps ${contest.overlaps}, ` +
        `after etcd itself revoked a live lease (${revoked} times) ${contest.removals}; each of ${led.size} candidates led again`,
    );
  }

  const threeCandidates = (name: string): Contest =>
    bench.contest(
      [0, 1, 2].map((i) =>
        bench.stand(name, [...server.endpoints.slice(i), ...server.endpoints.slice(0, i)]),
      ),
    );

  it(
    `cluster leader killed ${KILLS} times and restarted with its data`,
    { timeout: KILLS * 25_000 },
    async () => {
      const contest = threeCandidates("/kills");
      for (let i = 0; i < KILLS; i++) {
        await round(contest, async (member) => {
          await member.kill();
          await pause(TTL);
          member.start();
        });
        await server.ready();
      }
      await close("cluster leader killed", contest);
    },
  );

  // Two faults in one: the old leader of Debian's etcd, when it wakes up, can revoke leases that the new one keeps.
  it(`cluster leader stopped ${STOPS} times, and woken again`, { timeout: STOPS * 30_000 }, async () => {
    const contest = threeCandidates("/stops");
    for (let i = 0; i < STOPS; i++) {
      let stopped: EtcdMember | undefined;
      await round(contest, async (member) => {
        stopped = member;
        member.signal("SIGSTOP");
        await pause(2 * TTL);
      });
      const wake = async (): Promise<void> => {
        stopped?.signal("SIGCONT");
        await server.ready();
      };
      await round(contest, wake, { removing: true });
    }
    await close("cluster leader stopped and woken", contest);
  });

  it("a candidate cut from one member, then from all", { timeout: 60_000 }, async () => {
    const proxies = await Promise.all(server.endpoints.map((endpoint) => bench.proxyFor(endpoint)));
    const a = bench.stand(
      "/cuts",
      proxies.map((proxy) => proxy.endpoint),
    );
    const b = bench.stand("/cuts", server.endpoints);
    const only = bench.contest([a]);
    await until(() => a.leading);
    const contest = bench.contest([b]);
    for (const proxy of proxies) {
      proxy.blackHole();
      await pause(TTL);
      proxy.heal();
    }
    expect([a.leading, only.tokens.length]).toEqual([true, 1]); // one member less: no change at all
    const term = a.term!;
    let overlap = false;
    b.on("elected", () => (overlap ||= term.held || a.leading));
    for (const proxy of proxies) proxy.blackHole();
    const cutAt = performance.now();
    await until(() => b.leading, 3 * TTL);
    const gapMs = performance.now() - cutAt;
    for (const proxy of proxies) proxy.heal();
    await pause(1_000);
    expect(overlap).toBe(false);
    expect([a.leading, b.leading]).toEqual([false, true]);
    await contest.end();
    await until(() => a.leading, 3 * TTL); // not stuck: it campaigned again
    if (LONG)
      console.log(
        `cut from each member in turn: no change; from all: one change, ${Math.round(gapMs)} ms; no overlap`,
      );
  });
});
