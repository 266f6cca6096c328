/**
 * Watches are hints: one that misses a change costs time, and is warned of. One
 * that goes on after its signal is a leak in every campaign, and fails.
 */
import { check } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";
import { storesOf } from "./answers.js";
import type { Records } from "./answers.js";

const ROUNDS = 3;

/** Counts wakes, and waits for the next. */
class Wakes {
  count = 0;
  #waiting: (() => void)[] = [];

  readonly wake = (): void => {
    this.count++;
    for (const resolve of this.#waiting.splice(0)) resolve();
  };

  /** Whether one more comes in time. */
  async next(stage: Stage, from: number): Promise<boolean> {
    // Far longer than a push takes; a poll of a second inside the store still counts as a watch.
    const until = stage.now() + stage.soonMs / 4;
    while (this.count <= from && stage.now() < until)
      await Promise.race([
        new Promise<void>((resolve) => this.#waiting.push(resolve)),
        stage.pause(until - stage.now()),
      ]);
    return this.count > from;
  }
}

async function eachWatched(
  stage: Stage,
  run: (store: Records, other: Records, watch: NonNullable<Records["watch"]>) => Promise<void>,
): Promise<void> {
  const [a, b] = await stage.openMany(2);
  const others = storesOf(b!);
  for (const [index, store] of storesOf(a!).entries())
    if (store.watch !== undefined) await run(store, others[index]!, store.watch);
}

async function wakes(stage: Stage): Promise<void> {
  await eachWatched(stage, async (store, other, watch) => {
    const key = stage.name();
    const stop = new AbortController();
    const seen = new Wakes();
    const watching = watch(key, seen.wake, { signal: stop.signal }).catch(() => {});
    if (!(await seen.next(stage, 0)))
      stage.warn(
        `${store.what}: the watch did not call wake when it was armed; changes before that go unseen`,
      );
    let version: bigint | null = null;
    let missed = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const from = seen.count;
      version = (await other.write(key, version, `round ${round}`, stage.call()))?.version ?? null;
      if (!(await seen.next(stage, from))) missed++;
    }
    if (missed > 0)
      stage.warn(
        `${store.what}: the watch missed ${missed} of ${ROUNDS} changes made by another client; whoever waits finds them by polling, so handover is as slow as retryMs`,
      );
    stop.abort(new Error("enough was seen"));
    await stage.soon(watching, `${store.what}: a watch must end when its signal aborts`);
  });
}

async function endsWithItsSignal(stage: Stage): Promise<void> {
  await eachWatched(stage, async (store, other, watch) => {
    const key = stage.name();
    const stop = new AbortController();
    const seen = new Wakes();
    const watching = watch(key, seen.wake, { signal: stop.signal });
    await Promise.race([seen.next(stage, 0), watching.catch(() => {})]);
    stop.abort(new Error("nobody waits any more"));
    await stage.soon(
      watching.catch(() => {}),
      `${store.what}: a watch must end when its signal aborts`,
    );
    const before = seen.count;
    await other.write(key, null, "after the end", stage.call());
    await stage.pause(500);
    check(
      seen.count === before,
      `${store.what}: a watch whose signal was aborted called wake ${seen.count - before} times afterwards`,
    );
    const early = watch(key, seen.wake, { signal: AbortSignal.abort(new Error("aborted before it began")) });
    await stage.soon(
      early.catch(() => {}),
      `${store.what}: a watch that begins with an aborted signal must end`,
    );
  });
}

export const watching: Group = {
  name: "watches are hints",
  cases: [
    { name: "they wake when another client writes (a warning if not)", run: wakes },
    { name: "they end with their signal", run: endsWithItsSignal },
  ],
};
