/** Promise 3: `"lost"` only when it is certain. Not knowing is a throw. */
import type { Backend, Hold } from "../../../core/backend.js";
import { check, equal, rejects } from "../check.js";
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

async function unknownIsThrown(stage: Stage, fault: "cut" | "deafen"): Promise<void> {
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

/** After the fault the office is still ours: it may take a few tries, but no answer may be "lost". */
async function settled(stage: Stage, hold: Hold): Promise<void> {
  const until = stage.now() + 15_000;
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
      if (stage.now() > until) throw error;
      await stage.pause(100);
    }
  }
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
      name: "a lease that someone else has taken over is lost",
      async run(stage) {
        const { old, successor } = await takeover(stage);
        equal(
          await stage.soon(old.renew(stage.call()), "renewing must be answered"),
          "lost",
          "renewing the old lease",
        );
        equal(
          await stage.soon(old.proclaim("x", stage.call()), "proclaiming must be answered"),
          "lost",
          "proclaiming on the old lease",
        );
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
        equal(await stage.leader(backend, name), null, "who leads after release");
      },
    },
  ],
};
