/** Promise 2: `asked` was read before the request the store granted was sent. */
import { check } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";

const DELAY_MS = 200;
/** Timers may be this early. */
const EARLY_MS = 2;

/** Earlier than necessary is safe; later is how two leaders come about. */
function checkAsked(stage: Stage, what: string, askedAt: number, before: number, onTheWayMs: number): void {
  const latest = stage.now() - onTheWayMs;
  check(Number.isFinite(askedAt), `${what}: askedAt is ${askedAt}`);
  check(
    askedAt <= latest,
    `${what}: askedAt is ${(askedAt - latest).toFixed(1)} ms later than the request can have been sent: time must count from the question, not from the answer`,
  );
  check(
    askedAt > before - 60_000,
    `${what}: askedAt must be of the same monotonic clock (performance.now())`,
  );
}

async function underDelay(stage: Stage, onTheWayMs: number): Promise<void> {
  const backend = await stage.open();
  const name = stage.name();
  const ttlMs = stage.ttlMs(backend, 30_000);
  // Everything that is done only once (connections, directories) is done before.
  await stage.release(await stage.win(backend, stage.name(), { ttlMs }));
  if (onTheWayMs > 0) await stage.faults.slow(onTheWayMs + EARLY_MS);
  let before = stage.now();
  const hold = await stage.win(backend, name, { ttlMs });
  checkAsked(stage, "campaign", hold.asked.now, before, onTheWayMs);
  let last = hold.asked.now;
  for (let round = 0; round < 3; round++) {
    before = stage.now();
    const renewed = await stage.renew(hold);
    checkAsked(stage, "renew", renewed.asked.now, before, onTheWayMs);
    before = stage.now();
    const proclaimed = await stage.soon(
      hold.proclaim(`value ${round}`, stage.call()),
      "proclaiming must be answered",
    );
    check(proclaimed !== "lost", "proclaiming must succeed");
    checkAsked(stage, "proclaim", proclaimed.asked.now, before, onTheWayMs);
    check(renewed.asked.now >= last && proclaimed.asked.now >= renewed.asked.now, "asked must not go back");
    last = proclaimed.asked.now;
  }
}

export const askedAt: Group = {
  name: "time counts from the question",
  cases: [
    { name: "askedAt lies before the answer", run: (stage) => underDelay(stage, 0) },
    {
      name: "askedAt lies before the sending, however long the request travels",
      needs: ["slow"],
      run: (stage) => underDelay(stage, DELAY_MS),
    },
    {
      name: "renewing moves askedAt forward",
      async run(stage) {
        const backend = await stage.open();
        const hold = await stage.win(backend, stage.name());
        const begin = stage.now();
        let askedAt = hold.asked.now;
        // A lease that is shared may answer with a question asked a little earlier, but not forever.
        while (askedAt < begin && stage.now() < begin + 5_000) {
          await stage.pause(hold.ttlMs / 4);
          askedAt = (await stage.renew(hold)).asked.now;
        }
        check(askedAt >= begin, "renewals must extend the lease: askedAt never moved");
      },
    },
  ],
};
