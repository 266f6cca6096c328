/** Candidates as real processes, really killed and really stopped. */
import { check, equal, present } from "../check.js";
import type { Child } from "../child.js";
import type { Group } from "../group.js";
import { LineUp } from "../line-up.js";
import type { Stage } from "../stage.js";
import { checkHeirThatIsMissing } from "./heirs.js";

const SLACK_MS = 20_000;
/** A process that has said hello stands after so long. */
const JOINED_MS = 1_000;

async function start(
  stage: Stage,
  count: number,
): Promise<{ children: Child[]; ttlMs: number; name: string }> {
  const backend = await stage.open();
  const ttlMs = stage.ttlMs(backend, 2_000);
  const name = stage.name();
  const children = Array.from({ length: count }, () => stage.child(name, ttlMs));
  await Promise.all(children.map((child) => child.started()));
  return { children, ttlMs, name };
}

async function electedChild(children: readonly Child[], withinMs: number): Promise<Child> {
  return Promise.any(children.map(async (child) => (await child.leads(withinMs), child)));
}

/** From the first certain "yes" to the last: no two terms of different processes may share an instant. */
function checkApart(children: readonly Child[]): void {
  const claims = children.flatMap((child) => child.claims.map((claim) => ({ child, ...claim })));
  for (const one of claims) {
    for (const other of claims) {
      if (one.child === other.child) continue;
      check(one.token !== other.token, `two processes led with token ${one.token}`);
      const overlap = one.token < other.token && one.to > other.from && one.from < other.to;
      check(
        !overlap,
        `tokens ${one.token} and ${other.token} were both held at one instant: ${one.to - other.from} ns`,
      );
    }
  }
}

async function stopped(stage: Stage): Promise<void> {
  const { children, ttlMs } = await start(stage, 3);
  for (let round = 0; round < 2; round++) {
    const leader = await electedChild(children, ttlMs + SLACK_MS);
    const token = leader.leading!;
    leader.signal("SIGSTOP");
    const others = children.filter((child) => child !== leader);
    const next = await electedChild(others, 3 * ttlMs + SLACK_MS);
    check(next.leading! > token, "the successor's token must be higher");
    await stage.pause(200);
    leader.signal("SIGCONT");
    // It wakes up, and everything it still says counts.
    await stage.pause(500);
  }
  checkApart(children);
}

async function killed(stage: Stage): Promise<void> {
  const { children, ttlMs } = await start(stage, 3);
  let last = -1n;
  const alive = [...children];
  while (alive.length > 0) {
    const leader = await electedChild(alive, 3 * ttlMs + SLACK_MS);
    check(leader.leading! > last, "the successor's token must be higher");
    last = leader.leading!;
    equal(alive.filter((child) => child.leading !== undefined).length, 1, "processes that say they lead");
    await leader.kill();
    alive.splice(alive.indexOf(leader), 1);
  }
  checkApart(children);
}

/** It has stood behind the others, and dies without a word. */
async function deadHeir(stage: Stage): Promise<void> {
  const lineUp = new LineUp(stage);
  await checkHeirThatIsMissing(stage, lineUp, async () => {
    const child = stage.child(lineUp.election, stage.ttlMs(await stage.open(), 5_000));
    await child.started();
    await stage.pause(JOINED_MS);
    await child.kill();
    return present(child.candidate, "the child's id");
  });
}

export const processes: Group = {
  name: "real processes",
  cases: [
    {
      name: "a leader that is stopped is replaced, and knows it when it goes on",
      needs: ["child"],
      run: stopped,
    },
    {
      name: "an heir that was killed is waited for no longer than was asked",
      needs: ["child"],
      run: deadHeir,
    },
    { name: "a leader that is killed is replaced", needs: ["child"], run: killed },
    {
      name: "a leader that is told to end hands over and exits by itself",
      needs: ["child"],
      async run(stage) {
        const { children, ttlMs } = await start(stage, 2);
        const leader = await electedChild(children, ttlMs + SLACK_MS);
        leader.signal("SIGTERM");
        equal(await stage.soon(leader.exited, "the process must end", SLACK_MS), 0, "its exit code");
        await electedChild(
          children.filter((child) => child !== leader),
          SLACK_MS,
        );
        checkApart(children);
      },
    },
  ],
};
