/** Two names are two elections, or refused with a reason. */
import type { Backend } from "../../../seam/backend.js";
import { ConclaveError, isConclaveError } from "../../../kit/errors.js";
import { check, equal, show } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";

/** All of these pass core's own check. `#` is replaced by something nobody has used. */
const EVIL = [
  "../#",
  "..%2f#",
  "/etc/#",
  "#/",
  "/#",
  "//#",
  "#/../x",
  ".#",
  "#.",
  "..#",
  "~#",
  "-#",
  "--help-#",
  "# with spaces",
  " #",
  "# ",
  "#\\x",
  "#:x",
  "#*",
  "#?",
  "#|",
  "#<>",
  "#%00",
  "#%2e",
  "#$(id)",
  "#`id`",
  "#;ls",
  "#'\"",
  "#{}",
  "#[]",
  "#&=",
  "#+",
  "#@host",
  "#,x",
  "#é",
  "#漢字",
  "#🚀",
  "#\u202ex",
  "#\u200b",
  "#\u00a0",
  "__proto__#",
  "constructor#",
  "#.lock",
  "#.tmp",
  "CON#",
  "nul.#",
  `#${"x".repeat(180)}`,
  `#${"漢".repeat(180)}`,
];

/** Pairs that some store, file system or library takes for one. */
const LOOK_ALIKES: readonly (readonly [string, string])[] = [
  ["#-a", "#-A"],
  ["#-é", "#-e\u0301"],
  ["#-ﬁ", "#-fi"],
  ["#-\u212a", "#-K"],
  ["#", "# "],
  ["#", "#."],
  ["#", "#/"],
  ["#/x", "#//x"],
  ["#/x", "#\\x"],
  ["#/x", "#%2fx"],
  ["#%41", "#A"],
  ["#-ß", "#-ss"],
  ["#-1", "#-01"],
  ["#", "#\u200b"],
  ["#_x", "#-x"],
  ["#.x", "#/x"],
  [`#${"x".repeat(180)}a`, `#${"x".repeat(180)}b`],
];

/** Names inside names. */
const NESTED: readonly (readonly [string, string])[] = [
  ["#", "#/b"],
  ["#", "#/1a2b"],
  ["#/a", "#/a/b"],
  ["#", "#-b"],
  ["#", "#x"],
];

type Answer = "granted" | "refused" | "taken";

/** A refusal must be for good and say what to do; anything else is a fault. */
async function tryName(stage: Stage, backend: Backend, name: string): Promise<Answer> {
  try {
    const hold = await stage.soon(
      stage.campaign(backend, name, { wait: false, ttlMs: stage.ttlMs(backend, 60_000) }),
      `campaigning in ${show(name)}`,
    );
    return hold === null ? "taken" : "granted";
  } catch (error) {
    check(
      isRefusal(error),
      `campaigning in ${show(name)} must work or be refused for good, but: ${show(error)}`,
    );
    return "refused";
  }
}

function isRefusal(error: unknown): error is ConclaveError {
  return isConclaveError(error) && !error.retriable && error.message.length > 10;
}

async function twoElections(stage: Stage, pairs: readonly (readonly [string, string])[]): Promise<void> {
  const [a, b] = await stage.openMany(2);
  for (const [first, second] of pairs) {
    const unique = stage.name();
    for (const [one, other] of [
      [first, second],
      [second, first],
    ] as const) {
      const names = [one, other].map((name) => name.replace("#", unique + (one === first ? "" : "z"))) as [
        string,
        string,
      ];
      const answers = [await tryName(stage, a!, names[0]), await tryName(stage, b!, names[1])];
      check(
        !answers.includes("taken"),
        `${show(names[0])} and ${show(names[1])} are one election to this backend; they must be two, or one of them refused`,
      );
    }
  }
}

export const names: Group = {
  name: "two names are two elections",
  cases: [
    {
      name: "evil names work or are refused",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        for (const pattern of EVIL) {
          const name = pattern.replace("#", stage.name());
          if ((await tryName(stage, a!, name)) === "refused") continue;
          equal(await tryName(stage, b!, name), "taken", `a second candidate for ${show(name)}`);
          await stage.eventually(
            () => stage.leader(b!, name),
            (leader) => leader !== null,
            `the leader of ${show(name)} must be seen`,
          );
        }
      },
    },
    { name: "look-alikes are not mixed up", run: (stage) => twoElections(stage, LOOK_ALIKES) },
    { name: "names inside names are not mixed up", run: (stage) => twoElections(stage, NESTED) },
    {
      name: "a plain name works",
      async run(stage) {
        equal(
          await tryName(stage, await stage.open(), stage.name()),
          "granted",
          "campaigning in a plain name",
        );
      },
    },
  ],
};
