/** A cancelled campaign leaves nothing behind that could win later. */
import type { Backend } from "../../../core/backend.js";
import { check, equal, present, rejects } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";

const PATIENCE_MS = 500;

/** Three stand behind a leader and change their minds. */
async function changeTheirMinds(
  stage: Stage,
  backend: Backend,
  name: string,
  meanwhile = (): void => {},
): Promise<void> {
  const controller = new AbortController();
  const cancelled = [1, 2, 3].map((n) =>
    rejects(
      stage.stand(backend, name, {
        candidate: `cancelled-${n}`,
        signal: controller.signal,
        ttlMs: stage.ttlMs(backend, 60_000),
      }),
      "a cancelled campaign",
    ),
  );
  meanwhile();
  await stage.pause(300);
  controller.abort(new Error("changed its mind"));
  await stage.soon(Promise.all(cancelled), "cancelled campaigns must end");
}

async function cancelledWhileWaiting(stage: Stage): Promise<void> {
  const [a, b, c] = await stage.openMany(3);
  const long = stage.ttlMs(a!, 60_000);
  const empty = stage.name();
  const only = await stage.win(a!, empty, { ttlMs: long });
  await changeTheirMinds(stage, b!, empty);
  await stage.release(only);
  await stage.pause(300);
  equal(
    (await stage.leader(a!, empty))?.candidate,
    undefined,
    "who leads where all have changed their minds",
  );

  const name = stage.name();
  const first = await stage.win(a!, name, { ttlMs: long });
  let waiting: ReturnType<Stage["stand"]> | undefined;
  await changeTheirMinds(stage, b!, name, () => {
    waiting = stage.stand(c!, name, { candidate: "patient", ttlMs: long });
  });
  await stage.release(first);
  const hold = present(
    await stage.soon(waiting!, "those who were cancelled must not stand in the way"),
    "the hold of the patient one",
  );
  await stage.pause(300);
  equal((await stage.leader(a!, name))?.candidate, "patient", "who leads");
  await stage.renew(hold);
}

/** Cancelled at any moment of an acquisition: at worst the office stays empty for one lease. */
async function cancelledWhileWinning(stage: Stage): Promise<void> {
  const [a, b] = await stage.openMany(2);
  await Promise.all(
    Array.from({ length: stage.rounds }, async (_, round) => {
      const name = stage.name();
      const signal = stage.abortAfter(round / 4);
      const hold = await stage.stand(a!, name, { candidate: "hasty", signal }).catch(() => null);
      if (hold !== null) await stage.release(hold);
      const next = await stage.win(b!, name, { candidate: "next", ttlMs: stage.ttlMs(b!, 60_000) });
      await stage.pause(50);
      equal((await stage.leader(b!, name))?.candidate, "next", "who leads");
      await stage.renew(next);
    }),
  );
}

export const cancel: Group = {
  name: "a cancelled campaign is gone",
  cases: [
    { name: "when it was cancelled while it waited", run: cancelledWhileWaiting },
    { name: "when it was cancelled at the moment of winning", run: cancelledWhileWinning },
    {
      name: "an attempt that did not wait leaves nobody in the queue",
      async run(stage) {
        const [a, b, c] = await stage.openMany(3);
        const name = stage.name();
        const ttlMs = stage.ttlMs(a!, 60_000);
        const first = await stage.win(a!, name, { ttlMs });
        for (let round = 0; round < 3; round++)
          equal(
            await stage.soon(stage.stand(b!, name, { wait: false, ttlMs }), "an attempt must be answered"),
            null,
            "an attempt while someone leads",
          );
        await stage.release(first);
        const next = await stage.soon(
          stage.stand(c!, name, { candidate: "next", ttlMs }),
          "nobody may stand in the way",
        );
        check(next !== null, "the next candidate must win");
      },
    },
    {
      name: "a grant whose answer was lost does not lock its own candidate out",
      needs: ["deafen"],
      async run(stage) {
        const backend = await stage.open();
        const name = stage.name();
        const candidate = "unheard-33cc";
        await stage.release(await stage.win(backend, stage.name()));
        await stage.faults.deafen();
        const standing = stage.stand(backend, name, {
          candidate,
          wait: false,
          signal: stage.abortAfter(PATIENCE_MS),
        });
        await stage.soon(rejects(standing, "standing while no answer comes"), "standing must give up");
        await stage.faults.heal();
        const hold = await stage.win(backend, name, { candidate });
        await stage.renew(hold);
        equal((await stage.leader(backend, name))?.token, hold.token, "the token that observers see");
      },
    },
  ],
};
