/** A lease ends when it is not renewed: not before its time, and soon after. */
import { check } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";
import { keepFor } from "./grant.js";

/** Challengers that come at once and late; none may win before the silent leader's time is over. */
async function notBefore(stage: Stage, afterMs: number): Promise<void> {
  const [a, b] = await stage.openMany(2);
  const name = stage.name();
  const hold = await stage.win(a!, name);
  const { asked } = await stage.renew(hold);
  await stage.pause(afterMs);
  const next = await stage.win(b!, name);
  const silence = stage.now() - asked.now;
  check(
    silence >= hold.ttlMs - 2,
    `leadership was taken ${silence.toFixed(0)} ms after the last renewal, but the lease lasts ${hold.ttlMs} ms`,
  );
  check(next.token > hold.token, "the successor's token must be higher");
}

/** Someone wants leadership all the time, and does not get it. */
async function keptAgainstChallengers(
  stage: Stage,
  keep: (stage: Stage, hold: Awaited<ReturnType<Stage["win"]>>) => Promise<void>,
): Promise<void> {
  const [a, b] = await stage.openMany(2);
  const name = stage.name();
  const hold = await stage.win(a!, name);
  const stop = new AbortController();
  let taken = false;
  const challenger = stage.campaign(b!, name, { signal: stop.signal }).then(
    () => (taken = true),
    () => false,
  );
  await keep(stage, hold);
  check(!taken, "leadership was taken from a leader that renewed in time");
  stop.abort();
  await challenger;
}

export const expiry: Group = {
  name: "silent leaders are replaced",
  cases: [
    {
      name: "not before their lease is over, and soon after",
      run: async (stage) => void (await Promise.all([0, 100, 400].map((ms) => notBefore(stage, ms)))),
    },
    {
      name: "but not if they renew",
      run: (stage) => keptAgainstChallengers(stage, (_, hold) => keepFor(stage, hold, 2 * hold.ttlMs)),
    },
    {
      name: "and proclaiming is renewing",
      run: (stage) =>
        keptAgainstChallengers(stage, (_, hold) => {
          let round = 0;
          const proclaim = () => hold.proclaim(`round ${round++}`, stage.call());
          return keepFor(stage, hold, 2 * hold.ttlMs, proclaim);
        }),
    },
    {
      name: "and a lease is as long as was asked for, or longer",
      async run(stage) {
        const backend = await stage.open();
        const { minMs, stepMs } = backend.guarantees.ttl;
        for (const ttlMs of [
          stage.ttlMs(backend),
          stage.ttlMs(backend, 7_500),
          stage.ttlMs(backend, 30_000),
        ]) {
          const hold = await stage.win(backend, stage.name(), { ttlMs });
          check(hold.ttlMs >= ttlMs, `${ttlMs} ms were asked for, only ${hold.ttlMs} granted`);
          check(
            hold.ttlMs <= Math.max(ttlMs + stepMs, minMs),
            `${ttlMs} ms were asked for, ${hold.ttlMs} granted: more than a step (${stepMs} ms) longer`,
          );
          await stage.release(hold);
        }
      },
    },
  ],
};
