/** A store that forgot everything while somebody led: a wiped disk, a flushed cache, a server created anew. */
import { recordsOf } from "../../../kit/records.js";
import { isConclaveError } from "../../../kit/errors.js";
import type { Election } from "../../../election/election.js";
import type { Term } from "../../../api/term.js";
import { check, equal, show } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";

/** What it forgot may come back as a hold of someone else: the old one must never be extended again. */
async function holdIsOver(stage: Stage): Promise<void> {
  const [a, b] = await stage.openMany(2);
  const name = stage.name();
  const hold = await stage.win(a!, name, { ttlMs: stage.ttlMs(a!, 60_000) });
  await stage.renew(hold);
  await stage.faults.forget();
  const next = await stage.soon(
    stage.campaign(b!, name, { ttlMs: stage.ttlMs(b!, 60_000) }),
    "a store that forgot its leader must be open to the next candidate",
  );
  check(next !== null, "a waiting campaign must end with a hold");
  for (let round = 0; round < 3; round++) {
    const answer = await stage
      .soon(hold.renew(stage.call()), "renewing must be answered")
      .catch(() => "lost" as const);
    equal(answer, "lost", "renewing a hold that the store has forgotten");
  }
  await hold.release(stage.call()).catch(() => {});
  await stage.renew(next);
}

async function recordsAreGone(stage: Stage): Promise<void> {
  const [a, b] = await stage.openMany(2);
  const key = stage.name();
  const first = await stage.soon(
    recordsOf(a!.records, "this test").write(key, null, "kept by nobody", stage.call()),
    "writing a record",
  );
  await stage.faults.forget();
  for (const backend of [a!, b!]) {
    const entry = await recordsOf(backend.records, "this test")
      .write(key, first!.version, "on a version that is gone", stage.call())
      .catch(() => null);
    equal(entry, null, "writing on a version that the store has forgotten");
  }
}

/** Tokens start anew in some stores. Whoever has seen a higher one must say so, and not lead with a lower one. */
async function tokensStayTrue(stage: Stage): Promise<void> {
  const [a, b] = await stage.openMany(2);
  const name = stage.name();
  const elections = [a!, b!].map((backend) => stage.election(backend, name));
  const known = new Map<Election, bigint>();
  for (const election of [elections[0]!, elections[1]!, elections[0]!]) {
    const term = await stage.soon(election.campaign(), "campaigning alone must succeed");
    known.set(election, term.token);
    await term.resign();
  }
  await stage.faults.forget();
  for (const election of elections) {
    const led = await stage.soon(
      election.campaign().catch((error: unknown): unknown => error),
      "campaigning after the store has forgotten everything must end",
      3 * stage.soonMs,
    );
    const last = known.get(election)!;
    const loud = isConclaveError(led) && led.code === "token-regression";
    check(
      loud || (isTerm(led) && led.token > last),
      `a candidate that had led with token ${last} got ${isTerm(led) ? `token ${led.token}` : show(led)} after the store had forgotten everything; it must be a higher token or a loud "token-regression"`,
    );
    if (isTerm(led)) await led.resign();
  }
}

function isTerm(value: unknown): value is Term {
  return typeof value === "object" && value !== null && "token" in value && "held" in value;
}

export const amnesia: Group = {
  name: "a store that forgets",
  cases: [
    { name: "a forgotten hold is not extended", needs: ["forget"], run: holdIsOver },
    { name: "nothing is written on a forgotten version", needs: ["forget"], run: recordsAreGone },
    {
      name: "a candidate does not lead with a token below one that it has had",
      needs: ["forget"],
      run: tokensStayTrue,
    },
  ],
};
