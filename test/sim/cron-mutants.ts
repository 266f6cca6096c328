/** Rules of schedules, each broken in turn: see mutants.ts. */
import type { Rule } from "../../src/testing/sim/index.js";
import type { Mutant } from "./mutants.js";

const LEADER = "src/cron/leader.js";
const SCHEDULE = "src/cron/schedule.js";
const LEDGER = "src/cron/ledger.js";
const JOB = "src/cron/job.js";
const CRON = "src/cron/cron.js";
const TIMETABLE = "src/cron/timetable.js";
const ZONE = "src/cron/zone.js";
const FENCE = "src/fencing/record.js";

/** The monitor compares jobs with the ledger at once; what counts is that an instant is seen to run twice or get lost. */
const SEEN: readonly Rule[] = ["cron-unclaimed", "cron-ledger"];

/** And once more without what at least once tells it by: then an instant must run twice where it may not. */
const SEEN_TWICE: readonly Rule[] = [...SEEN, "cron-attempt"];

const CLAIM =
  "await this.#update((stored) => applyClaim(stored ?? this.#ledger, decision.run, decision.skipped, policy));";
const REFUSED = "current === undefined ? run.at <= ledger.cursor : !isOpen(current)";

const BROKEN: readonly Omit<Mutant, "subject">[] = [
  {
    name: "cron: no claim",
    rule: "an instant is claimed in the store before it runs",
    ignore: SEEN_TWICE,
    edits: [
      {
        file: LEADER,
        find: CLAIM,
        replace: "this.#ledger = applyClaim(this.#ledger, decision.run, decision.skipped, policy);",
      },
    ],
  },
  {
    name: "cron: claim after run",
    rule: "an instant is claimed in the store before it runs",
    ignore: SEEN_TWICE,
    edits: [
      { file: LEADER, find: CLAIM, replace: `this.#start(decision.run); ${CLAIM}` },
      { file: LEADER, find: "return this.#start(decision.run);", replace: "return;" },
    ],
  },
  {
    name: "cron: instant from the local clock",
    rule: "instants come from the timetable",
    edits: [
      {
        file: SCHEDULE,
        find: "const run = claim(due.at, 1, actor);",
        replace: "const run = claim(actor.now, 1, actor);",
      },
    ],
  },
  {
    name: "cron: run before it is due",
    rule: "an instant is claimed when the leader's clock has reached it",
    edits: [
      {
        file: SCHEDULE,
        find: "if (first === null || first > actor.now)",
        replace: "if (first === null || first > actor.now + 400)",
      },
    ],
  },
  {
    name: "cron: begins without looking whether it still leads",
    rule: "no run begins without a term held",
    edits: [{ file: LEADER, find: "if (!term.held || term.signal.aborted) {", replace: "if (false) {" }],
  },
  {
    name: "cron: a leader of the past may write the ledger",
    rule: "the ledger is fenced",
    edits: [{ file: FENCE, find: "assertFresh(token, current?.token ?? null);", replace: "" }],
  },
  {
    name: "cron: what a dead leader left behind is forgotten",
    rule: "claimed and not finished is reported as missed",
    edits: [
      {
        file: SCHEDULE,
        find: 'if (run.state !== "running" || run.token === actor.token)',
        replace: "if (run)",
      },
    ],
  },
  {
    name: "cron: what was interrupted is forgotten",
    rule: "at least once: what was not finished runs again",
    edits: [
      {
        file: SCHEDULE,
        find: 'return run.state === "interrupted" || (run.state',
        replace: "return (run.state",
      },
    ],
  },
  {
    name: "cron: at least once gives up what was interrupted",
    rule: "at least once: nothing is given up before its last attempt",
    edits: [{ file: SCHEDULE, find: "if (run.attempt < policy.maxAttempts)", replace: "if (false)" }],
  },
  {
    name: "cron: an attempt keeps its number",
    rule: "every repeat has a higher attempt number",
    edits: [
      {
        file: SCHEDULE,
        find: "run: claim(run.at, run.attempt + 1, actor)",
        replace: "run: claim(run.at, run.attempt, actor)",
      },
    ],
  },
  {
    name: "cron: answers overtake each other",
    rule: "changes of the ledger are made one after the other",
    ignore: SEEN,
    edits: [
      {
        file: LEADER,
        find: "this.#updating.then(() => this.#change(change, afterwards))",
        replace: "this.#change(change, afterwards)",
      },
      { file: SCHEDULE, find: REFUSED, replace: "false" },
    ],
  },
  {
    name: "cron: the cursor follows the clock back",
    rule: "a clock that is set back runs nothing again",
    ignore: SEEN,
    edits: [
      {
        file: LEDGER,
        find: "const cursor = Math.max(ledger.cursor, ...changed.map((run) => run.until ?? run.at));",
        replace: "const cursor = changed.at(-1)?.at ?? ledger.cursor;",
      },
      {
        file: SCHEDULE,
        find: "const first = timetable.next(ledger.cursor);",
        replace: "const first = timetable.next(Math.min(ledger.cursor, actor.now));",
      },
      { file: SCHEDULE, find: REFUSED, replace: "false" },
    ],
  },
  {
    name: "cron: a job that was stopped counts as done",
    rule: "done is what came to its end",
    edits: [{ file: JOB, find: '? { state: "interrupted", note:', replace: '? { state: "done", note:' }],
  },
  {
    name: "cron: of many that were passed over only the first is told",
    rule: "whatever is not run is reported (a bug that the simulator found)",
    edits: [
      {
        file: SCHEDULE,
        find: "[...passed, ...timetable.latest(newest, at - 1, 1)]",
        replace: "passed",
      },
    ],
  },
  {
    name: "cron: a backlog counts as overlap",
    rule: "what was due before a run began waits for its turn",
    edits: [{ file: SCHEDULE, find: "|| first <= began)", replace: ")" }],
  },
  {
    name: "cron: how an old run ended is dropped at once",
    rule: "whatever is not run is reported (a bug that the simulator found)",
    edits: [{ file: LEDGER, find: "isOpen(run) || fresh.has(run.at) ||", replace: "isOpen(run) ||" }],
  },
  {
    name: "cron: a miss whose answer got lost is not told",
    rule: "whatever is not run is reported (a bug that the simulator found)",
    edits: [
      {
        file: LEADER,
        find: "for (const run of taken.missed)\n",
        replace: "missed.clear();\n            for (const run of taken.missed)\n",
      },
    ],
  },
  {
    name: "cron: the ledger is written after close",
    rule: "nothing is left after close (a bug that the simulator found)",
    edits: [{ file: CRON, find: "this.#closed.abort();", replace: "" }],
  },
  {
    name: "cron: text is read in UTC whatever the zone",
    rule: "a pattern with hours goes by the clock of its zone",
    edits: [{ file: TIMETABLE, find: "new Zone(timeZone)", replace: 'new Zone("UTC")' }],
  },
  {
    name: "cron: a local time that comes twice counts the second time",
    rule: "each local time runs once, the first time",
    edits: [{ file: ZONE, find: "Math.min(...candidates)", replace: "Math.max(...candidates)" }],
  },
];

export const CRON_MUTANTS: readonly Mutant[] = BROKEN.map((mutant) => ({ ...mutant, subject: "schedule" }));
