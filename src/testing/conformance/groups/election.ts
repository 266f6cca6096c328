/** The law of core, kept on this backend: elections as programs use them. */
import type { Election } from "../../../election/election.js";
import type { Term } from "../../../api/term.js";
import { check, equal } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";

/** Runs until told to stop; says when it leads. */
function runner(stage: Stage, election: Election): { stop(): Promise<void>; leads(): Promise<Term> } {
  const stop = new AbortController();
  let elected: (term: Term) => void;
  let first = new Promise<Term>((resolve) => (elected = resolve));
  const running = election.run(
    async (term) => {
      elected(term);
      await new Promise((resolve) => term.signal.addEventListener("abort", resolve, { once: true }));
      first = new Promise<Term>((resolve) => (elected = resolve));
    },
    { signal: stop.signal },
  );
  return {
    stop: async () => {
      stop.abort();
      await stage.soon(running, "run() must end when it is told to");
    },
    leads: () => stage.soon(first, "a candidate must come into leadership", 30_000),
  };
}

async function handOver(stage: Stage): Promise<void> {
  const backends = await stage.openMany(3);
  const name = stage.name();
  const elections = backends.map((backend) =>
    stage.election(backend, name, { ttlMs: stage.ttlMs(backend, 10_000) }),
  );
  const runners = elections.map((election) => runner(stage, election));
  let last = -1n;
  while (runners.length > 0) {
    const led = await Promise.any(runners.map(async (one) => ({ one, term: await one.leads() })));
    check(led.term.token > last, `token ${led.term.token} after ${last}: tokens must strictly rise`);
    last = led.term.token;
    equal(elections.filter((election) => election.leading).length, 1, "candidates that say they lead");
    await led.one.stop();
    equal(led.term.held, false, "held after run() has ended");
    runners.splice(runners.indexOf(led.one), 1);
  }
}

async function cutOff(stage: Stage): Promise<void> {
  const [a, b] = await stage.openMany(2);
  const name = stage.name();
  const election = stage.election(a!, name);
  const running = runner(stage, election);
  const term = await running.leads();
  await stage.faults.cut();
  const end = await stage.soon(
    term.ended,
    "a leader that cannot renew must end its term",
    10_000 + election.timing.ttlMs,
  );
  equal(end.reason, "expired", "the reason of its end");
  equal(term.held, false, "held after the end");
  await stage.faults.heal();
  const other = stage.election(b!, name);
  const second = runner(stage, other);
  const next = await Promise.any([running.leads(), second.leads()]);
  check(next.token > term.token, "after the fault someone leads with a higher token");
  await Promise.all([running.stop(), second.stop()]);
}

export const elections: Group = {
  name: "elections keep the law",
  cases: [
    {
      name: "campaign, hold, proclaim, resign",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const name = stage.name();
        const [first, second] = [
          stage.election(a!, name, { id: "first" }),
          stage.election(b!, name, { id: "second" }),
        ];
        const term = await stage.soon(first.campaign(), "campaigning alone must succeed");
        equal(term.held && first.leading, true, "held leading");
        equal(await second.tryCampaign(), null, "a second candidate's attempt");
        const leads = (candidate: string, value?: string): Promise<unknown> =>
          stage.eventually(
            () => second.leader(),
            (leader) => leader?.candidate === candidate && (value === undefined || leader.value === value),
            `who leads, by the second candidate: expected ${candidate} ${value ?? ""}`,
          );
        await leads(first.candidate);
        await term.proclaim("port 8080");
        await leads(first.candidate, "port 8080");
        await term.resign();
        equal(term.held, false, "held after resigning");
        const next = await stage.soon(second.campaign(), "leadership must be free after resigning");
        check(next.token > term.token, "the next term's token must be higher");
      },
    },
    {
      name: "a term is kept for longer than its lease",
      async run(stage) {
        const backend = await stage.open();
        const election = stage.election(backend, stage.name());
        const lost: unknown[] = [];
        election.on("ended", ({ end }) => lost.push(end.reason));
        const term = await stage.soon(election.campaign(), "campaigning alone must succeed");
        const until = stage.now() + 1.5 * election.timing.ttlMs;
        while (stage.now() < until) {
          await stage.pause(50);
          if (!term.held) break;
        }
        equal(term.held, true, `held for longer than a lease (${lost.join()})`);
      },
    },
    { name: "leadership goes from one to the next as they stop", run: handOver },
    {
      name: "observers of an election see its leaders come and go",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const name = stage.name();
        const [candidate, observer] = [stage.election(a!, name), stage.election(b!, name)];
        const tokens: (bigint | null)[] = [];
        const following = (async () => {
          for await (const leader of observer.observe()) {
            tokens.push(leader?.token ?? null);
            if (tokens.length > 1 && leader === null) return;
          }
        })();
        await stage.pause(100);
        const term = await stage.soon(candidate.campaign(), "campaigning alone must succeed");
        while (!tokens.includes(term.token)) await stage.soon(stage.pause(20), "");
        await term.resign();
        await stage.soon(following, "the vacancy must be seen");
        equal(tokens.filter((token) => token !== null).length, 1, "leaders seen");
      },
    },
    {
      name: "close resigns and leaves",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const name = stage.name();
        const first = stage.election(a!, name, { ttlMs: stage.ttlMs(a!, 60_000) });
        const term = await stage.soon(first.campaign(), "campaigning alone must succeed");
        await stage.soon(first.close(), "closing");
        equal(term.end?.reason, "closed", "the reason of the term's end");
        const second = stage.election(b!, name, { ttlMs: stage.ttlMs(b!, 60_000) });
        await stage.soon(second.campaign(), "leadership must be free after closing");
      },
    },
    {
      name: "a leader that is cut off ends its term, and the election recovers",
      needs: ["cut"],
      run: cutOff,
    },
  ],
};
