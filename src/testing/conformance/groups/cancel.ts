/** A cancelled campaign leaves nothing behind that could win later. */
import type { Backend } from "../../../seam/backend.js";
import { check, equal, present, rejects } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";

const PATIENCE_MS = 500;
/** More than any campaign needs, connections and lookups included. */
const MOST_ANSWERS = 24;

/** Three wait behind a leader and change their minds. */
async function changeTheirMinds(
  stage: Stage,
  backend: Backend,
  name: string,
  meanwhile = (): void => {},
): Promise<void> {
  const controller = new AbortController();
  const cancelled = [1, 2, 3].map((n) =>
    rejects(
      stage.campaign(backend, name, {
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
  await stage.leaderIs(a!, empty, null, "who leads where all have changed their minds");

  const name = stage.name();
  const first = await stage.win(a!, name, { ttlMs: long });
  let waiting: ReturnType<Stage["campaign"]> | undefined;
  await changeTheirMinds(stage, b!, name, () => {
    waiting = stage.campaign(c!, name, { candidate: "patient", ttlMs: long });
  });
  await stage.release(first);
  const hold = present(
    await stage.soon(waiting!, "those who were cancelled must not campaign in the way"),
    "the hold of the patient one",
  );
  await stage.pause(300);
  await stage.leaderIs(a!, name, { candidate: "patient" }, "who leads");
  await stage.renew(hold);
}

/** Cancelled at any moment of an acquisition: at worst leadership stays empty for one lease. */
async function cancelledWhileWinning(stage: Stage): Promise<void> {
  const [a, b] = await stage.openMany(2);
  await Promise.all(
    Array.from({ length: stage.rounds }, async (_, round) => {
      const name = stage.name();
      const signal = stage.abortAfter(round / 4);
      const hold = await stage.campaign(a!, name, { candidate: "hasty", signal }).catch(() => null);
      if (hold !== null) await stage.release(hold);
      const next = await stage.win(b!, name, { candidate: "next", ttlMs: stage.ttlMs(b!, 60_000) });
      await stage.pause(50);
      await stage.leaderIs(b!, name, { candidate: "next" }, "who leads");
      await stage.renew(next);
    }),
  );
}

/**
 * A campaign asks several times (it reads, then writes), and only the loss of
 * the last answer leaves a grant behind that nobody knows of. So one answer more
 * is let through each time, until a campaign succeeds: in the attempt before, the
 * answer that was lost was that of the grant.
 */
async function grantUnheard(stage: Stage): Promise<void> {
  const backend = await stage.open();
  await stage.release(await stage.win(backend, stage.name()));
  for (let after = 0; ; after++) {
    check(
      after <= MOST_ANSWERS,
      `a campaign did not succeed although ${MOST_ANSWERS} answers were let through: does faults.deafen() honour "after"?`,
    );
    if (await standUnheard(stage, backend, after))
      return check(after > 0, "faults.deafen() let all answers through");
  }
}

/** Stands once and hears only so many answers; then the same candidate must win at once. Says whether it won the first time. */
async function standUnheard(stage: Stage, backend: Backend, after: number): Promise<boolean> {
  const name = stage.name();
  // Far longer than winning may take: whoever waits for its own lease to run out is seen.
  const own = { candidate: "unheard-33cc", ttlMs: stage.ttlMs(backend, 120_000) };
  await stage.faults.deafen({ after });
  const campaign = stage
    .campaign(backend, name, {
      ...own,
      wait: false,
      signal: stage.abortAfter(Math.min(PATIENCE_MS, stage.soonMs / 10)),
    })
    .catch(() => "unheard" as const);
  const first = await stage.soon(campaign, "campaigning while no answer comes must give up");
  await stage.faults.heal();
  check(
    first !== null,
    "campaigning alone while no answer comes must throw: null says that someone else leads",
  );
  if (first !== "unheard") {
    await stage.release(first);
    return true;
  }
  const hold = await stage.winAgain(
    backend,
    name,
    own,
    "a candidate must not be locked out by its own grant",
  );
  await stage.renew(hold);
  await stage.leaderIs(backend, name, { token: hold.token }, "the leader that observers see");
  return false;
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
            await stage.soon(stage.campaign(b!, name, { wait: false, ttlMs }), "an attempt must be answered"),
            null,
            "an attempt while someone leads",
          );
        await stage.release(first);
        const next = await stage.soon(
          stage.campaign(c!, name, { candidate: "next", ttlMs }),
          "nobody may campaign in the way",
        );
        check(next !== null, "the next candidate must win");
      },
    },
    {
      name: "a grant whose answer was lost does not lock its own candidate out",
      needs: ["deafen"],
      run: grantUnheard,
    },
  ],
};
