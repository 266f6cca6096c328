/** Wishes about who leads next: followed where they can be, for a bounded time, and never at the price of two leaders. */
import type { Guarantees, Wish } from "../../../seam/backend.js";
import { check, Inconclusive, show } from "../check.js";
import type { Group } from "../group.js";
import { LineUp } from "../line-up.js";
import type { Stage } from "../stage.js";

export const WISHES: readonly Wish[] = ["heir", "stand-back"];
const ROUNDS = 10;
const VACANCIES = 3;
/** How long others leave a vacancy to an heir that does not come. */
const FOR_MS = 2_000;
const STAND_BACK_MS = 2_000;

export function honours(guarantees: Guarantees, wish: Wish): boolean {
  return (guarantees.honours ?? WISHES).includes(wish);
}

function checkOrder(lineUp: LineUp, expected: readonly string[], what: string): void {
  check(show(lineUp.ids) === show(expected), `${what}: expected ${show(expected)}, led ${show(lineUp.ids)}`);
}

/** The others came before it and look ten times as often; the leader itself campaigns again at once. */
async function namedLeads(stage: Stage): Promise<void> {
  const lineUp = new LineUp(stage);
  const leader = await lineUp.join("leader");
  for (const id of ["first", "quick"]) await lineUp.join(id, { retryMs: 50 });
  const heir = await lineUp.join("heir", { retryMs: 500 });
  await leader.resign({ candidate: heir.candidate, forMs: stage.soonMs });
  const again = leader.campaign();
  await lineUp.count(2, "the heir must lead");
  checkOrder(lineUp, ["leader", "heir"], "the heir must be the next leader");
  await again;
}

async function handedRound(stage: Stage): Promise<void> {
  const lineUp = new LineUp(stage);
  const ids = ["a", "b", "c"];
  const all = await lineUp.joinAll(ids);
  const expected = ["a"];
  for (let round = 1; round <= Math.min(ROUNDS, stage.rounds); round++) {
    const at = ids.indexOf(expected.at(-1)!);
    const heir = all[(at + 1 + (round % 2)) % ids.length]!;
    // By its full id, or by what people call it.
    await all[at]!.resign({ candidate: round % 3 === 0 ? heir.candidate : heir.id, forMs: stage.soonMs });
    await all[at]!.campaign();
    expected.push(heir.id);
    await lineUp.count(expected.length, `${heir.id} must lead`);
  }
  checkOrder(lineUp, expected, "each must lead when it was named, and nobody in between");
}

/** Resigns in favour of somebody who does not come, with two others waiting; the others must not wait for longer. */
export async function checkHeirThatIsMissing(
  stage: Stage,
  lineUp: LineUp,
  candidate: () => Promise<string>,
): Promise<void> {
  const [leader] = await lineUp.joinAll(["leader", "a", "b"]);
  const missing = await candidate();
  const from = stage.now();
  await leader!.resign({ candidate: missing, forMs: FOR_MS });
  await lineUp.count(2, "an heir that does not come must not be waited for", FOR_MS + stage.soonMs);
  const took = stage.now() - from;
  // Twice the time means that it was counted twice, or that this machine stalls.
  if (took > 1.9 * FOR_MS)
    throw new Inconclusive(
      `an heir that does not come was waited for ${Math.round(took)} ms, with ${FOR_MS} ms asked`,
    );
}

/** The heir of an earlier release means nothing to a later one. */
async function nobodyNamed(stage: Stage): Promise<void> {
  const lineUp = new LineUp(stage);
  const [leader, heir] = await lineUp.joinAll(["leader", "heir", "other"]);
  await leader!.resign({ candidate: heir!.candidate, forMs: 3 * stage.soonMs });
  await lineUp.count(2, "somebody must lead");
  const second = lineUp.ids.at(-1) === "heir" ? heir! : undefined;
  if (second === undefined) return; // a backend that ignores heirs has nothing to remember
  await second.resign();
  await lineUp.count(3, "a release without an heir must be taken at once");
}

async function letsOthersGoFirst(stage: Stage): Promise<void> {
  for (let vacancy = 1; vacancy <= VACANCIES; vacancy++) {
    const lineUp = new LineUp(stage);
    const leader = await lineUp.join("leader");
    await lineUp.join("low", { standBackMs: () => STAND_BACK_MS, retryMs: 50 });
    await lineUp.join("high");
    await leader.resign();
    await lineUp.count(2, "somebody must lead");
    checkOrder(lineUp, ["leader", "high"], "who stands back must let the other go first");
  }
}

async function leadsAlone(stage: Stage): Promise<void> {
  const lineUp = new LineUp(stage);
  const low = { standBackMs: () => STAND_BACK_MS / 4 };
  const leader = await lineUp.join("leader", low);
  await lineUp.count(1, "who stands back must lead an election that nobody leads");
  await lineUp.join("low", low);
  await leader.resign();
  await lineUp.count(2, "who stands back must lead if nobody else comes");
}

async function namedThoughItStandsBack(stage: Stage): Promise<void> {
  const lineUp = new LineUp(stage);
  const leader = await lineUp.join("leader");
  await lineUp.join("other");
  const low = await lineUp.join("low", { standBackMs: () => STAND_BACK_MS });
  await lineUp.join("last");
  await leader.resign({ candidate: low.candidate, forMs: stage.soonMs });
  await lineUp.count(2, "the heir must lead");
  checkOrder(lineUp, ["leader", "low"], "who is named must lead, though it would let others go first");
}

export const heirs: Group = {
  name: "who leads next",
  cases: [
    {
      name: "the one who is named leads, though others waited longer and look more often",
      wishes: ["heir"],
      run: namedLeads,
    },
    {
      name: "handed round by name, nobody leads in between, and tokens rise",
      wishes: ["heir"],
      run: handedRound,
    },
    {
      name: "an heir that does not stand is waited for no longer than was asked",
      run: (stage) =>
        checkHeirThatIsMissing(stage, new LineUp(stage), () => Promise.resolve("nobody-0a1b2c")),
    },
    { name: "a release without an heir keeps nobody waiting", run: nobodyNamed },
    {
      name: "who stands back lets another go first, though it waited longer",
      wishes: ["stand-back"],
      run: letsOthersGoFirst,
    },
    { name: "who stands back leads if nobody else comes", run: leadsAlone },
    {
      name: "who is named does not stand back",
      wishes: ["heir", "stand-back"],
      run: namedThoughItStandsBack,
    },
  ],
};
