/** Closing leaves nothing behind: no timer, no socket, no watch. */
import { recordsOrNone } from "../no-records.js";
import { setMaxListeners } from "node:events";
import type { Backend, Hold } from "../../../seam/backend.js";
import { check, show } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";

/** Longer than it takes to send a request. */
const SENT_MS = 100;

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
  const waiting = stage.campaign(b!, name, { signal: stop.signal, retryMs: 60_000 }).catch(() => null);
  await stage.leaderIs(b!, name, { token: hold.token }, "the leader");
  const observing = stage.follow(b!, name, 60_000);
  await observing.sees((leader) => leader?.token === hold.token, "the leader must be seen");
  await stage.renew(hold);
  await recordsOrNone(a!).write(name, null, "x", stage.call());
  stop.abort();
  await stage.soon(waiting, "a cancelled campaign must end");
  await stage.release(hold);
  await a![Symbol.asyncDispose]();
  // The observation is still running: closing its backend ends it, or the end of the test does.
  await b![Symbol.asyncDispose]();
}

async function nothingLeft(stage: Stage, before: Map<string, number>, what: string): Promise<void> {
  const until = stage.now() + stage.soonMs / 2;
  while (more(before, handles()).length > 0 && stage.now() < until) await stage.pause(50);
  const left = more(before, handles());
  check(left.length === 0, `${what} there are more handles than before: ${show(left)}`);
}

/** One call of each kind on one backend, none of which has been answered. */
function callAll(stage: Stage, backend: Backend, hold: Hold, signal: AbortSignal): Promise<unknown> {
  const observing = async (): Promise<void> => {
    const options = { signal, pollMs: 60_000, attemptMs: 60_000 };
    for await (const _ of backend.observe(stage.name(), options));
  };
  const patient = { ttlMs: stage.ttlMs(backend, 30_000), attemptMs: 5_000, retryMs: 60_000, signal };
  return Promise.allSettled([
    hold.renew({ signal }),
    hold.proclaim("on the way", { signal }),
    stage.campaign(backend, stage.name(), patient),
    stage.campaign(backend, stage.name(), { ...patient, wait: false }),
    recordsOrNone(backend).read(stage.name(), { signal }),
    recordsOrNone(backend).write(stage.name(), null, "x", { signal }),
    observing(),
  ]);
}

type Meanwhile = "under way" | "aborted" | "cut" | "blackHole";

/** Closes a backend whose calls have not ended. Whoever waits for them to end first waits forever if the store is gone. */
async function closeAmid(stage: Stage, meanwhile: Meanwhile): Promise<void> {
  const backend = await stage.open();
  const hold = await stage.win(backend, stage.name(), { ttlMs: stage.ttlMs(backend, 30_000) });
  const stop = new AbortController();
  setMaxListeners(0, stop.signal); // all calls share it
  if (meanwhile === "cut" || meanwhile === "blackHole") await stage.faults[meanwhile]();
  const calls = callAll(stage, backend, hold, stop.signal);
  if (meanwhile !== "aborted") await stage.pause(SENT_MS);
  if (meanwhile !== "under way") stop.abort(new Error("the caller gave up"));
  await stage.soon(
    Promise.resolve(backend[Symbol.asyncDispose]()),
    `closing a backend whose calls are ${meanwhile === "under way" ? "under way" : "aborted and not answered"}`,
    1.5 * stage.soonMs, // requests of tests last five seconds, and giving a lease back may need one
  );
  stop.abort(new Error("the test is over"));
  await stage.soon(calls, "calls must end when their signal aborts, also on a closed backend");
}

async function closeAmidAndCount(stage: Stage, meanwhile: Meanwhile): Promise<void> {
  const once = async (): Promise<void> => {
    const own = stage.another();
    try {
      await closeAmid(own, meanwhile);
    } finally {
      for (const problem of await own.clear()) stage.warn(problem);
    }
  };
  await once(); // what is loaded and made once, is made now
  const before = handles();
  await once();
  await nothingLeft(stage, before, "after closing with calls under way");
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
          check((await own.clear()).length === 0, "what a test opened must close");
        }
        await nothingLeft(stage, before, `after ${inner.length} openings and closings`);
      },
    },
    { name: "with calls under way", run: (stage) => closeAmidAndCount(stage, "under way") },
    { name: "with calls that were just aborted", run: (stage) => closeAmidAndCount(stage, "aborted") },
    {
      name: "with calls that never reached the store",
      needs: ["cut"],
      run: (stage) => closeAmidAndCount(stage, "cut"),
    },
    {
      name: "with calls on a connection that died without a word",
      needs: ["blackHole"],
      run: (stage) => closeAmidAndCount(stage, "blackHole"),
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
