/** A lease lasts as long as was asked for, whatever dates do: this machine's, or the store's. */
import { check } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";
import { keepFor } from "./grant.js";

const HOUR_MS = 3_600_000;
/** Timers may be this early. */
const EARLY_MS = 2;

interface Jump {
  /** A lease that is waited for while the clock jumps. */
  readonly jump: (ttlMs: number) => Promise<void> | void;
  readonly whose: string;
  /** Whether the challenger waits already, and has seen renewals, when it happens. */
  readonly waits: boolean;
}

/** Nobody is granted the lease before its time is over. */
async function notEarly(stage: Stage, { jump, whose, waits }: Jump): Promise<void> {
  const [a, b] = await stage.openMany(2);
  const name = stage.name();
  const hold = await stage.win(a!, name);
  const campaign = (): Promise<unknown> => stage.win(b!, name);
  let next = waits ? campaign() : undefined;
  next?.catch(() => {});
  await keepFor(stage, hold, hold.ttlMs / 2);
  const { asked } = await stage.renew(hold);
  // The challenger looks at the record at least once more before the clock jumps.
  await stage.pause(hold.ttlMs / 8);
  await jump(hold.ttlMs);
  next ??= campaign();
  await next;
  const silence = stage.now() - asked.now;
  check(
    silence >= hold.ttlMs - EARLY_MS,
    `${whose} was set forward, and leadership was taken ${silence.toFixed(0)} ms after the last renewal; the lease lasts ${hold.ttlMs} ms`,
  );
}

/** A silent leader is replaced in time although the clock went back. */
async function notLate(stage: Stage, jump: Jump["jump"], whose: string): Promise<void> {
  const [a, b] = await stage.openMany(2);
  const name = stage.name();
  const hold = await stage.win(a!, name);
  const next = stage.campaign(b!, name);
  await stage.pause(hold.ttlMs / 4);
  await jump(hold.ttlMs);
  await stage.soon(
    next,
    `${whose} was set back, and a silent leader was not replaced`,
    stage.soonMs + 4 * hold.ttlMs,
  );
}

export const clocks: Group = {
  name: "clocks that jump",
  cases: [
    {
      name: "the date of this machine set forward ends no lease",
      async run(stage) {
        const jump = (): void => stage.jumpDate(HOUR_MS);
        await Promise.all([true, false].map((waits) => notEarly(stage, { jump, whose: "the date", waits })));
      },
    },
    {
      name: "the date of this machine set back keeps nobody leading",
      run: (stage) => notLate(stage, () => stage.jumpDate(-HOUR_MS), "the date"),
    },
  ],
};

export const storeClock: Group = {
  name: "a store whose clock jumps",
  cases: [
    {
      name: "set forward, it ends no lease that a waiting candidate saw renewed",
      needs: ["step"],
      run: (stage) =>
        notEarly(stage, {
          jump: (ttlMs) => stage.faults.step(ttlMs),
          whose: "the store's clock",
          waits: true,
        }),
    },
    {
      name: "set back, it keeps nobody leading for long",
      needs: ["step"],
      run: (stage) => notLate(stage, (ttlMs) => stage.faults.step(-ttlMs), "the store's clock"),
    },
  ],
};
