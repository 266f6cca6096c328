/** Promise 6: every call ends soon after its signal aborts. */
import { recordsOrNone } from "../no-records.js";
import { check, equal, rejects } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";

/** "Soon", for calls that have only to notice. */
const SOON_MS = 5_000;

type Call = (signal: AbortSignal) => Promise<unknown>;

/** All are under way before the first is given up: a backend may give up the connection that others wait on with it. */
async function endAfterAbort(stage: Stage, calls: Readonly<Record<string, Call>>): Promise<void> {
  const under = Object.entries(calls).map(([what, call]) => begin(what, call));
  await stage.pause(100);
  for (const { what, ended } of under) check(!ended(), `${what} must still be waiting: nothing answers it`);
  for (const { controller } of under) controller.abort(new Error("the caller gave up"));
  await Promise.all(
    under.map(({ what, calling }) =>
      stage.soon(Promise.allSettled([calling]), `${what} must end when its signal aborts`, SOON_MS),
    ),
  );
}

interface UnderWay {
  readonly what: string;
  readonly controller: AbortController;
  readonly calling: Promise<unknown>;
  ended(): boolean;
}

function begin(what: string, call: Call): UnderWay {
  const controller = new AbortController();
  let over = false;
  const calling = call(controller.signal).finally(() => (over = true));
  calling.catch(() => {});
  return { what, controller, calling, ended: () => over };
}

const endsAfterAbort = (stage: Stage, what: string, call: Call): Promise<void> =>
  endAfterAbort(stage, { [what]: call });

async function drain(observation: AsyncIterable<unknown>): Promise<void> {
  const sights = observation[Symbol.asyncIterator]();
  while ((await sights.next()).done !== true);
}

async function whileCut(stage: Stage): Promise<void> {
  const backend = await stage.open();
  const name = stage.name();
  const ttlMs = stage.ttlMs(backend, 60_000);
  const hold = await stage.win(backend, name, { ttlMs, attemptMs: 60_000 });
  const releasing = await stage.win(backend, stage.name(), { ttlMs, attemptMs: 60_000 });
  await recordsOrNone(backend).read(name, stage.call());
  const patient = { ttlMs, attemptMs: 60_000 };
  await stage.faults.cut();
  await endAfterAbort(stage, {
    renew: (signal) => hold.renew({ signal }),
    release: (signal) => releasing.release({ signal }),
    campaign: (signal) => stage.campaign(backend, stage.name(), { ...patient, signal }),
    "one attempt": (signal) => stage.campaign(backend, stage.name(), { ...patient, wait: false, signal }),
    "reading a record": (signal) => recordsOrNone(backend).read(name, { signal }),
    "writing a record": (signal) => recordsOrNone(backend).write(name, null, "x", { signal }),
    observe: (signal) => drain(backend.observe(stage.name(), { signal, pollMs: 500, attemptMs: 60_000 })),
  });
}

export const abort: Group = {
  name: "calls end when aborted",
  cases: [
    {
      name: "a campaign that waits",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const name = stage.name();
        await stage.win(a!, name, { ttlMs: stage.ttlMs(a!, 60_000) });
        await endsAfterAbort(stage, "campaign", (signal) =>
          stage.campaign(b!, name, { signal, retryMs: 30_000 }),
        );
      },
    },
    {
      name: "an observation that waits",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const name = stage.name();
        await stage.win(a!, name, { ttlMs: stage.ttlMs(a!, 60_000) });
        await endsAfterAbort(stage, "observe", (signal) =>
          drain(b!.observe(name, { signal, pollMs: 30_000, attemptMs: 30_000 })),
        );
      },
    },
    {
      name: "a call that begins with an aborted signal does nothing",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const name = stage.name();
        const signal = AbortSignal.abort(new Error("aborted before it began"));
        await stage.soon(
          rejects(stage.campaign(a!, name, { signal }), "campaign with an aborted signal"),
          "campaign must end",
          SOON_MS,
        );
        await stage.win(b!, name, { ttlMs: stage.ttlMs(b!, 30_000), wait: false });
        await stage.soon(
          rejects(recordsOrNone(a!).write(name, null, "x", { signal }), "write with an aborted signal"),
          "write must end",
          SOON_MS,
        );
        equal(
          await recordsOrNone(a!).read(name, stage.call()),
          null,
          "the record of a write that was aborted before it began",
        );
      },
    },
    { name: "every call while the store does not answer", needs: ["cut"], run: whileCut },
  ],
};
