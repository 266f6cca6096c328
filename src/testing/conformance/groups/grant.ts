/** Promise 1: a grant is atomic against all other grants of the same election. */
import type { Backend, Extension, Hold } from "../../../seam/backend.js";
import { check, ConformanceFailure, equal, Inconclusive, show } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";

const CANDIDATES = 6;

async function raceForVacantElection(stage: Stage): Promise<void> {
  const backends = await stage.openMany(CANDIDATES);
  for (let round = 0; round < stage.rounds; round++) {
    const name = stage.name();
    const tries = backends.map((backend) =>
      stage.campaign(backend, name, { wait: false, ttlMs: stage.ttlMs(backend, 30_000) }),
    );
    const holds = (await stage.soon(Promise.all(tries), "every attempt must be answered")).filter(
      (hold) => hold !== null,
    );
    equal(holds.length, 1, `round ${round}: winners of ${CANDIDATES} attempts at once`);
    await stage.release(holds[0]!);
  }
}

/** One election: its leader goes silent, many wait for it; whoever wins renews while the others go on waiting. */
async function raceForStaleLease(stage: Stage): Promise<void> {
  const [first, ...challengers] = await stage.openMany(CANDIDATES);
  const name = stage.name();
  const silent = await stage.win(first!, name);
  const stop = new AbortController();
  const wins: Hold[] = [];
  const waiting = challengers.map(async (backend) => {
    const hold = await standOn(stage, backend, name, stop.signal);
    if (hold !== null) wins.push(hold);
    return hold;
  });
  const winner = await stage.soon(
    Promise.any(waiting),
    "a silent leader must be replaced",
    10_000 + 3 * silent.ttlMs,
  );
  check(winner !== null, "a waiting campaign must end with a hold");
  await keepFor(stage, winner, 1.5 * winner.ttlMs);
  stop.abort();
  await Promise.allSettled(waiting);
  check(
    wins.length === 1,
    `one lease was taken over ${wins.length} times at once: tokens ${show(wins.map(({ token }) => token))}`,
  );
}

/** Stands until it wins or is told to stop. A campaign that throws does not know: it campaigns again, as the library does. */
async function standOn(
  stage: Stage,
  backend: Backend,
  name: string,
  signal: AbortSignal,
): Promise<Hold | null> {
  for (;;) {
    try {
      return await stage.campaign(backend, name, { signal });
    } catch {
      if (signal.aborted || stage.signal.aborted) return null;
      await stage.pause(50);
    }
  }
}

/**
 * Extends the lease often. A call that throws leaves open whether it was extended: it is asked again, as the library
 * does. If no call succeeds for most of the lease (the machine or the store stalled), nothing can be concluded.
 */
export async function keepFor(
  stage: Stage,
  hold: Hold,
  ms: number,
  extend = (): Promise<Extension | "lost"> => hold.renew(stage.call()),
): Promise<void> {
  const until = stage.now() + ms;
  let asked = hold.asked.now;
  while (stage.now() < until) {
    await stage.pause(hold.ttlMs / 8);
    const answer = await stage.soon(extend(), "extending must be answered").catch(unlessFailure);
    const gap = stage.now() - asked;
    if (gap > 0.8 * hold.ttlMs) {
      const why = answer instanceof Error ? `; the last one failed: ${show(answer)}` : "";
      throw new Inconclusive(`${Math.round(gap)} ms passed between two extensions${why}`);
    }
    if (answer instanceof Error) continue;
    check(answer !== "lost", `token ${hold.token} was extended in time, yet it is lost`);
    asked = answer.asked.now;
  }
}

/** What a store threw, as an answer; what the suite threw, thrown on. */
function unlessFailure(error: unknown): Error {
  if (error instanceof ConformanceFailure) throw error;
  return error instanceof Error ? error : new Error(String(error));
}

async function oneInsideAtATime(stage: Stage): Promise<void> {
  const backends = await stage.openMany(CANDIDATES);
  const name = stage.name();
  let inside = 0;
  let served = 0;
  const tokens: bigint[] = [];
  await Promise.all(
    backends.map(async (backend) => {
      for (let turn = 0; turn < 3; turn++) {
        const hold = await stage.campaign(backend, name, { ttlMs: stage.ttlMs(backend, 60_000) });
        check(hold !== null, "a waiting campaign must end with a hold");
        tokens.push(hold.token);
        equal(++inside, 1, "holders at the same time");
        await stage.pause(5);
        inside--;
        served++;
        await stage.release(hold);
      }
    }),
  );
  equal(served, CANDIDATES * 3, "candidates served");
  const sorted = tokens.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  check(
    show(tokens) === show(sorted) && new Set(tokens).size === tokens.length,
    `tokens must rise in the order of the terms: ${show(tokens)}`,
  );
}

export const grant: Group = {
  name: "a grant is atomic",
  cases: [
    { name: "of many who campaign at once, one wins", run: raceForVacantElection },
    {
      name: "of many who wait for a silent leader, one takes over",
      run: async (stage) => void (await Promise.all([1, 2, 3].map(() => raceForStaleLease(stage)))),
    },
    { name: "waiting candidates hold leadership one after the other", run: oneInsideAtATime },
    {
      name: "one who does not wait is told that someone leads",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const name = stage.name();
        await stage.win(a!, name, { ttlMs: stage.ttlMs(a!, 30_000) });
        equal(
          await stage.soon(stage.campaign(b!, name, { wait: false }), "the attempt must be answered"),
          null,
          "the second hold",
        );
      },
    },
    {
      name: "two candidates on one backend exclude each other too",
      async run(stage) {
        const backend = await stage.open();
        const name = stage.name();
        const ttlMs = stage.ttlMs(backend, 30_000);
        const tries = Array.from({ length: 4 }, () => stage.campaign(backend, name, { wait: false, ttlMs }));
        const holds = (await stage.soon(Promise.all(tries), "every attempt must be answered")).filter(
          (hold) => hold !== null,
        );
        equal(holds.length, 1, "winners on one backend");
      },
    },
  ],
};
