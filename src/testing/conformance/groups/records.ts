/** Small durable records by compare-and-swap, bound to no lease. */
import { recordsOf } from "../../../kit/records.js";
import type { Backend } from "../../../seam/backend.js";
import type { Entry } from "../../../seam/table.js";
import { isConclaveError } from "../../../kit/errors.js";
import { check, equal, present, show } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";

const TEXTS = ["", "x", '{"a":1}', "line\nline\r\n", "ünïcödé 漢字 🚀", "0", "null", "y".repeat(16 * 1024)];

async function write(
  stage: Stage,
  backend: Backend,
  key: string,
  expected: bigint | null,
  text: string,
): Promise<Entry | null> {
  return stage.soon(
    recordsOf(backend.records, "this test").write(key, expected, text, stage.call()),
    "writing a record must be answered",
  );
}

async function read(stage: Stage, backend: Backend, key: string): Promise<Entry | null> {
  return stage.soon(
    recordsOf(backend.records, "this test").read(key, stage.call()),
    "reading a record must be answered",
  );
}

/** A read may lag behind, so it is asked again for a moment. */
async function reads(
  stage: Stage,
  backend: Backend,
  key: string,
  record: string,
  version?: bigint,
): Promise<void> {
  await stage.eventually(
    () => read(stage, backend, key),
    (entry) => entry?.record === record && (version === undefined || entry.version === version),
    `reading a record: expected ${show(record)}${version === undefined ? "" : ` of version ${version}`}`,
  );
}

/**
 * Many write themselves down in one record: each exactly once, and nobody is
 * lost. Not knowing whether a write took effect is an answer too: then the
 * record itself tells.
 */
async function countTogether(stage: Stage): Promise<void> {
  const backends = await stage.openMany(4);
  const key = stage.name();
  await write(stage, backends[0]!, key, null, "all:");
  const marks = backends.map((_, i) => Array.from({ length: 10 }, (_each, j) => `${i}.${j}`));
  await Promise.all(
    backends.map(async (backend, i) => {
      for (const mark of marks[i]!) {
        for (;;) {
          const found = await stage.eventually(
            () => read(stage, backend, key),
            (entry) => entry !== null,
            "reading the record that all write: expected an entry",
          );
          const entry = present(found, "the record");
          if (entry.record.split(" ").includes(mark)) break;
          const written = await write(stage, backend, key, entry.version, `${entry.record} ${mark}`).catch(
            (error: unknown) => {
              check(
                isConclaveError(error) && error.retriable,
                `writing a record failed for good: ${show(error)}`,
              );
              return null;
            },
          );
          if (written !== null) break;
          await stage.pause(Math.floor(Math.random() * 10));
        }
      }
    }),
  );
  const all = marks.flat().toSorted().join(" ");
  await stage.eventually(
    () => read(stage, backends[1]!, key),
    (entry) => entry?.record.split(" ").slice(1).toSorted().join(" ") === all,
    `all who wrote themselves down: expected ${all}`,
  );
}

export const records: Group = {
  name: "records by compare-and-swap",
  cases: [
    {
      name: "a record that is not there is null",
      async run(stage) {
        equal(await read(stage, await stage.open(), stage.name()), null, "a record nobody wrote");
      },
    },
    {
      name: "is written on the version that was read, and on no other",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const key = stage.name();
        const first = present(await write(stage, a!, key, null, "one"), "creating a record");
        equal(await write(stage, b!, key, null, "two"), null, "creating it a second time");
        const second = present(await write(stage, b!, key, first.version, "two"), "updating a record");
        check(
          second.version > first.version,
          `version ${second.version} after ${first.version}: versions must rise`,
        );
        equal(await write(stage, a!, key, first.version, "three"), null, "writing on a version of the past");
        equal(
          await write(stage, a!, key, second.version + 1_000_000n, "three"),
          null,
          "writing on a version that never was",
        );
        await reads(stage, a!, key, "two", second.version);
        equal(
          await write(stage, a!, stage.name(), second.version, "x"),
          null,
          "updating a record that is not there",
        );
      },
    },
    { name: "counts right when many count at once", run: countTogether },
    {
      name: "of many who create it at once, one succeeds",
      async run(stage) {
        const backends = await stage.openMany(6);
        for (let round = 0; round < stage.rounds; round++) {
          const key = stage.name();
          const entries = await Promise.all(
            backends.map((backend, index) => write(stage, backend, key, null, String(index))),
          );
          const winners = entries.filter((entry) => entry !== null);
          equal(winners.length, 1, `round ${round}: creators of one record`);
          await reads(stage, backends[0]!, key, winners[0]!.record);
        }
      },
    },
    {
      name: "keeps texts as they are",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const key = stage.name();
        let version: bigint | null = null;
        for (const text of TEXTS) {
          version = present(await write(stage, a!, key, version, text), "writing a text").version;
          await reads(stage, b!, key, text);
        }
      },
    },
    {
      name: "outlives the backend, and its versions go on",
      async run(stage) {
        const key = stage.name();
        const first = await stage.open();
        const written = present(await write(stage, first, key, null, "kept"), "creating a record");
        await first[Symbol.asyncDispose]();
        const second = await stage.open();
        await reads(stage, second, key, "kept", written.version);
        const next = present(await write(stage, second, key, written.version, "changed"), "updating it");
        check(next.version > written.version, "versions must rise over a reopening");
      },
    },
    {
      name: "has nothing to do with the election of the same name",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const name = stage.name();
        const hold = await stage.win(a!, name, { value: "leader", ttlMs: stage.ttlMs(a!, 60_000) });
        const first = present(
          await write(stage, b!, name, null, "record"),
          "creating a record named like an election",
        );
        await stage.renew(hold);
        await stage.soon(hold.proclaim("leader still", stage.call()), "proclaiming must be answered");
        await reads(stage, a!, name, "record");
        await stage.leaderIs(b!, name, { value: "leader still" }, "the leader's value");
        await stage.release(hold);
        await reads(stage, a!, name, "record", first.version);
      },
    },
  ],
};
