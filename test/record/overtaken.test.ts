/** Two questions of one backend overtake each other: the answer to the older one comes last. */
import { expect, it } from "vitest";
import type { CallOptions, Leader } from "../../src/seam/backend.js";
import type { Entry } from "../../src/seam/table.js";
import { deferred } from "../../src/kit/wait.js";
import type { LeaseRecord } from "../../src/record/lease.js";
import { SetClock } from "../support/set-clock.js";
import { lease, OneRecord, openOne } from "./one-record.js";

const POLL_MS = 400;

/** Vouches for its reads, and keeps answers on their way for as long as the test likes. */
class SlowAnswers extends OneRecord {
  delay: Promise<void> | undefined;

  override async read(key: string, options: CallOptions): Promise<Entry<LeaseRecord> | null> {
    const { delay } = this;
    const entry = await super.read(key, options);
    await delay;
    return entry === null ? null : { ...entry, current: true };
  }
}

it("a current answer that is overtaken by a newer one is no proof that the store went back", async () => {
  const clock = new SetClock();
  const store = new SlowAnswers();
  const backend = openOne(store, clock);
  const controller = new AbortController();
  const follow = async (seen: (Leader | null)[]): Promise<void> => {
    const options = { signal: controller.signal, pollMs: POLL_MS, attemptMs: 10_000 };
    for await (const leader of backend.observe("e", options)) seen.push(leader);
  };
  store.put(lease({ holder: "a-1" }));
  const overtaken: (Leader | null)[] = [];
  const answer = deferred<void>();
  store.delay = answer.promise;
  const first = follow(overtaken);
  await clock.advance(0);
  // Its question is answered with "a-1", but the answer is slow. Meanwhile b-1 leads, and everybody else sees it.
  store.delay = undefined;
  store.put(lease({ holder: "b-1" }));
  const seen: (Leader | null)[] = [];
  const second = follow(seen);
  await clock.advance(0);
  expect(seen.map((leader) => leader?.candidate)).toEqual(["b-1"]);
  answer.resolve();
  await clock.advance(0);
  expect(overtaken, "older than what was shown").toEqual([]);
  await clock.advance(POLL_MS);
  expect(overtaken.map((leader) => leader?.candidate)).toEqual(["b-1"]);
  expect(seen).toHaveLength(1);
  controller.abort();
  await Promise.all([first, second]);
});
