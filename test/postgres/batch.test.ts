/** Renewals of many elections in one statement: whose answer is whose. No server. */
import { expect, it } from "vitest";
import { RenewalBatch } from "../../src/backends/postgres/batch.js";
import type { Row, Session } from "../../src/backends/postgres/client.js";
import { Rows, type RowWrite } from "../../src/backends/postgres/rows.js";
import { SetClock } from "../support/set-clock.js";

const write = (key: string): RowWrite => ({ key, expected: 1n, record: "{}", ttlMs: 1_000, tell: false });
const { signal } = new AbortController();

/** A server that returns rows in the order of its choice. */
function batchWith(answer: readonly Row[]): RenewalBatch {
  const session: Pick<Session, "query"> = { query: async () => answer };
  return new RenewalBatch(
    new Rows({
      clock: new SetClock(),
      session: session as Session,
      table: { schema: undefined, table: "t" },
      secrets: [],
      warn: () => {},
    }),
  );
}

it("answers are told apart by their key: a server returns rows in any order, and leaves out those it did not write", async () => {
  const batch = batchWith([
    { key: "l:c", version: "30" },
    { key: "l:a", version: "10" },
  ]);
  const answers = ["l:a", "l:b", "l:c"].map((key) => batch.add(write(key), signal));
  expect(await Promise.all(answers)).toEqual([10n, null, 30n]);
});
