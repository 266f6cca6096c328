/** Promise 3: `"lost"` only when it is certain. Not knowing is a throw. */
import type { Backend, Extension, Hold } from "../../../seam/backend.js";
import { check, ConformanceFailure, equal, rejects, show } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";

const PATIENCE_MS = 500;

/** A leader goes silent and is replaced. */
export async function takeover(
  stage: Stage,
): Promise<{ name: string; backends: Backend[]; old: Hold; successor: Hold }> {
  const backends = await stage.openMany(3);
  const name = stage.name();
  const old = await stage.win(backends[0]!, name);
  const successor = await stage.win(backends[1]!, name, {
    ttlMs: stage.ttlMs(backends[1]!, 30_000),
    value: "successor",
  });
  return { name, backends, old, successor };
}

async function unknownIsThrown(stage: Stage, fault: "cut" | "deafen" | "blackHole"): Promise<void> {
  const backend = await stage.open();
  const hold = await stage.win(backend, stage.name(), { ttlMs: stage.ttlMs(backend, 60_000) });
  await stage.renew(hold);
  for (const call of ["renew", "proclaim", "renew"] as const) {
    await stage.faults[fault]();
    const signal = stage.abortAfter(PATIENCE_MS);
    const asked = call === "renew" ? hold.renew({ signal }) : hold.proclaim("new", { signal });
    await stage.soon(rejects(asked, `${call} while the store does not answer`), `${call} must give up`);
    await stage.faults.heal();
    await settled(stage, hold);
  }
}

/** After the fault leadership is still ours: it may take a few tries, but no answer may be "lost". */
async function settled(stage: Stage, hold: Hold): Promise<void> {
  const until = stage.now() + 1.5 * stage.soonMs;
  for (;;) {
    try {
      const answer = await stage.soon(
        hold.renew({ signal: stage.abortAfter(3_000) }),
        "renewing must be answered",
      );
      check(
        answer !== "lost",
        "an answer that did not come was taken for a loss: the lease was ours all the time",
      );
      return;
    } catch (error) {
      if (error instanceof ConformanceFailure) throw error;
      check(stage.now() < until, `after the fault was over the lease could not be renewed: ${show(error)}`);
      await stage.pause(100);
    }
  }
}

/** Never extended; and "lost" as soon as a read that lags has caught up. Until then it may say that it does not know. */
async function isLost(stage: Stage, ask: () => Promise<Extension | "lost">, what: string): Promise<void> {
  const asked = (): Promise<unknown> =>
    stage.soon(ask(), `${what} must be answered`).catch((error: unknown) => ({ thrown: show(error) }));
  const extended = (answer: unknown): boolean =>
    typeof answer === "object" && answer !== null && "asked" in answer;
  await stage.eventually(
    asked,
    (answer) => {
      check(!extended(answer), `${what}: it was extended, although someone else has taken over`);
      return answer === "lost";
    },
    `${what}: expected "lost"`,
  );
}

export const lost: Group = {
  name: "lost only if certain",
  cases: [
    {
      name: "a lease that is kept is not lost",
      async run(stage) {
        const backend = await stage.open();
        const hold = await stage.win(backend, stage.name(), { ttlMs: stage.ttlMs(backend, 30_000) });
        for (let round = 0; round < 10; round++) await stage.renew(hold);
      },
    },
    {
      name: "renewals at the same time do not make each other lose",
      async run(stage) {
        const backend = await stage.open();
        const hold = await stage.win(backend, stage.name(), { ttlMs: stage.ttlMs(backend, 30_000) });
        const answers = await Promise.all([
          stage.renew(hold),
          hold.proclaim("while renewing", stage.call()),
          stage.renew(hold),
        ]);
        check(!answers.includes("lost"), "calls that overlap on one hold must not end it");
        await stage.renew(hold);
      },
    },
    {
      name: "a store that cannot be reached is not a loss",
      needs: ["cut"],
      run: (stage) => unknownIsThrown(stage, "cut"),
    },
    {
      name: "an answer that is lost is not a loss",
      needs: ["deafen"],
      run: (stage) => unknownIsThrown(stage, "deafen"),
    },
    {
      name: "a connection that died without a word is not a loss, and is replaced",
      needs: ["blackHole"],
      run: (stage) => unknownIsThrown(stage, "blackHole"),
    },
    {
      name: "a lease that someone else has taken over is lost",
      async run(stage) {
        const { old, successor } = await takeover(stage);
        await isLost(stage, () => old.renew(stage.call()), "renewing the old lease");
        await isLost(stage, () => old.proclaim("x", stage.call()), "proclaiming on the old lease");
        await stage.renew(successor);
      },
    },
    {
      name: "a lease that was released is not extended",
      async run(stage) {
        const backend = await stage.open();
        const name = stage.name();
        const hold = await stage.win(backend, name, { ttlMs: stage.ttlMs(backend, 30_000) });
        await stage.release(hold);
        const answer = await stage
          .soon(hold.renew(stage.call()), "renewing must be answered")
          .catch(() => "lost" as const);
        equal(answer, "lost", "renewing after release");
        await stage.leaderIs(backend, name, null, "who leads after release");
      },
    },
  ],
};
