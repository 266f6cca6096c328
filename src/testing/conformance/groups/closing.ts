/** Closing leaves nothing behind: no timer, no socket, no watch. */
import { check, show } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";

function handles(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

function more(before: Map<string, number>, after: Map<string, number>): string[] {
  return [...after]
    .filter(([kind, count]) => count > (before.get(kind) ?? 0))
    .map(([kind, count]) => `${count - (before.get(kind) ?? 0)} ${kind}`);
}

/** Everything a backend can be asked for, cut short in the middle, and closed. */
async function useAndClose(stage: Stage): Promise<void> {
  const [a, b] = await stage.openMany(2);
  const name = stage.name();
  const stop = new AbortController();
  const hold = await stage.win(a!, name, { ttlMs: stage.ttlMs(a!, 30_000) });
  const waiting = stage.stand(b!, name, { signal: stop.signal, retryMs: 60_000 }).catch(() => null);
  const observing = stage.follow(b!, name, 60_000);
  await observing.sees((leader) => leader?.token === hold.token, "the leader must be seen");
  await stage.renew(hold);
  await a!.records.write(name, null, "x", stage.call());
  stop.abort();
  await stage.soon(waiting, "a cancelled campaign must end");
  await stage.release(hold);
  await a![Symbol.asyncDispose]();
  // The observation is still running: closing its backend ends it, or the end of the test does.
  await b![Symbol.asyncDispose]();
}

export const closing: Group = {
  name: "closing leaves nothing behind",
  cases: [
    {
      name: "no handle, after many openings",
      async run(stage) {
        await useAndClose(stage); // what is loaded and made once, is made now
        const before = handles();
        const inner: Stage[] = [];
        for (let round = 0; round < 5; round++) {
          const own = stage.another();
          inner.push(own);
          await useAndClose(own);
          await own.clear();
        }
        const until = stage.now() + 5_000;
        while (more(before, handles()).length > 0 && stage.now() < until) await stage.pause(50);
        const left = more(before, handles());
        check(
          left.length === 0,
          `after ${inner.length} openings and closings there are more handles than before: ${show(left)}`,
        );
      },
    },
    {
      name: "closing twice is closing once",
      async run(stage) {
        const backend = await stage.open();
        await stage.release(await stage.win(backend, stage.name()));
        await Promise.all([backend[Symbol.asyncDispose](), backend[Symbol.asyncDispose]()]);
        await backend[Symbol.asyncDispose]();
      },
    },
    {
      name: "closing one backend does not disturb the others",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const name = stage.name();
        await stage.leader(a!, name);
        const hold = await stage.win(b!, name, { ttlMs: stage.ttlMs(b!, 30_000) });
        await a![Symbol.asyncDispose]();
        await stage.renew(hold);
        await stage.release(hold);
      },
    },
    {
      name: "a backend that was opened and never used closes",
      async run(stage) {
        const backend = await stage.open();
        await stage.soon(Promise.resolve(backend[Symbol.asyncDispose]()), "closing an unused backend");
      },
    },
  ],
};
