import { describe, expect, it } from "vitest";
import { memoryBackend } from "../../src/backends/memory/index.js";
import { decodeControls, encodeControls, NO_CONTROLS } from "../../src/control/codec.js";
import { followControls } from "../../src/control/follow.js";
import { ControlRecord } from "../../src/control/record.js";
import { answerTo, askLeader, serveRequests } from "../../src/control/requests.js";
import type { RequestHandlers } from "../../src/control/requests.js";
import { systemClock } from "../../src/kit/clock.js";
import { ConclaveError } from "../../src/kit/errors.js";
import { deferred } from "../../src/kit/wait.js";
import type { RecordStore } from "../../src/seam/table.js";

const never = new AbortController().signal;
const by = "test";

function recordOn(records: RecordStore, election = "mailer"): ControlRecord {
  return new ControlRecord({ records, election, clock: systemClock, attemptMs: 1_000 });
}

/** Without a watch: what a store without pushes is like. */
function unpushed({ read, write }: RecordStore, store: RecordStore): RecordStore {
  return {
    read: (key, options) => read.call(store, key, options),
    write: (key, expected, record, options) => write.call(store, key, expected, record, options),
    [Symbol.asyncDispose]: async () => {},
  };
}

function serving(record: ControlRecord, handlers: RequestHandlers, token = 7n) {
  const stop = new AbortController();
  const errors: unknown[] = [];
  const served = serveRequests(record, { candidate: "a-1", token }, handlers, {
    signal: stop.signal,
    pollMs: 60_000,
    unpushedMs: 20,
    failed: (error) => errors.push(error),
  });
  return { stop: () => (stop.abort(), served), errors };
}

describe.each(["pushed", "polled"])("requests to a leader, %s", (how) => {
  const open = (): RecordStore => {
    const { records } = memoryBackend();
    return how === "pushed" ? records : unpushed(records, records);
  };

  it("reach the leader that they name, once, and are answered", async () => {
    const records = open();
    const asked: unknown[] = [];
    const leader = serving(recordOn(records), {
      transfer: (ask, request) => {
        asked.push([ask, request.by]);
        return `to ${ask.to}`;
      },
    });
    const operator = recordOn(records);
    const term = { candidate: "a-1", token: 7n };
    const request = await askLeader(operator, { kind: "transfer", to: "b-2" }, term, { signal: never, by });
    const answer = await answerTo(operator, request.id, { signal: never, limitMs: 5_000 });
    expect(answer).toEqual({ id: request.id, outcome: "accepted", detail: "to b-2" });
    await operator.change((now) => ({ ...now, pause: { since: 1, by } }), { signal: never });
    await leader.stop();
    expect(asked).toEqual([[{ kind: "transfer", to: "b-2" }, by]]);
    expect(leader.errors).toEqual([]);
  });

  it("are answered also if the term ends meanwhile, before the serving is over: nobody closes the store under the answer", async () => {
    const records = open();
    const begun = deferred<void>();
    const outcome = deferred<string>();
    const leader = serving(recordOn(records), {
      resign: () => {
        begun.resolve();
        return outcome.promise;
      },
    });
    const operator = recordOn(records);
    const term = { candidate: "a-1", token: 7n };
    const request = await askLeader(operator, { kind: "resign" }, term, { signal: never, by });
    await begun.promise;
    const atTheEnd = leader.stop().then(() => operator.read({ signal: never }));
    // Serving that waited for nothing would be over by now, and the record without an answer.
    await new Promise((resolve) => setImmediate(resolve));
    outcome.resolve("resigning");
    expect((await atTheEnd).answer).toEqual({ id: request.id, outcome: "accepted", detail: "resigning" });
    expect(leader.errors).toEqual([]);
  });

  it("are refused by a leader that throws, or does not take them", async () => {
    const records = open();
    const leader = serving(recordOn(records), {
      transfer: () => {
        throw new ConclaveError("state", "nobody of that name");
      },
    });
    const operator = recordOn(records);
    const term = { candidate: "a-1", token: 7n };
    const first = await askLeader(operator, { kind: "transfer", to: "b" }, term, { signal: never, by });
    expect(await answerTo(operator, first.id, { signal: never, limitMs: 5_000 })).toMatchObject({
      outcome: "refused",
      detail: "nobody of that name",
    });
    const second = await askLeader(operator, { kind: "resign" }, term, { signal: never, by });
    expect(await answerTo(operator, second.id, { signal: never, limitMs: 5_000 })).toMatchObject({
      outcome: "refused",
      detail: "this leader does not take requests to resign",
    });
    await leader.stop();
  });

  it("never hit a later term: neither of the same candidate, nor of another", async () => {
    const records = open();
    const operator = recordOn(records);
    const old = { candidate: "a-1", token: 6n };
    const request = await askLeader(operator, { kind: "resign" }, old, { signal: never, by });
    let hit = 0;
    const leader = serving(recordOn(records), { resign: () => `${++hit}` });
    expect(await answerTo(operator, request.id, { signal: never, limitMs: 200 })).toBeNull();
    const other = { candidate: "b-1", token: 7n };
    const second = await askLeader(operator, { kind: "resign" }, other, { signal: never, by });
    expect(await answerTo(operator, second.id, { signal: never, limitMs: 200 })).toBeNull();
    await leader.stop();
    expect(hit).toBe(0);
  });
});

describe("a control record", () => {
  it("keeps what a newer version wrote, and does not act on what it does not know", () => {
    const text = JSON.stringify({
      v: 1,
      pause: { since: 5, by: "x" },
      request: { id: "r", ask: { kind: "dance" }, candidate: "a", token: "1", at: 1, by: "x" },
      priority: ["a"],
    });
    const controls = decodeControls(text, "mailer");
    expect(controls).toMatchObject({
      pause: { since: 5, by: "x" },
      request: null,
      more: { priority: ["a"] },
    });
    expect(JSON.parse(encodeControls(controls))).toMatchObject({ priority: ["a"], v: 1 });
  });

  it.each(["", "[]", "null", '{"v":2}', '{"v":1,"pause":true}', `{"v":1,"x":"${"y".repeat(20_000)}"}`])(
    "that cannot be read is a conflict, not an empty one: %.20s",
    (text) => {
      expect(() => decodeControls(text, "mailer")).toThrow(expect.objectContaining({ code: "conflict" }));
    },
  );

  it("is changed by several at once without losing a change", async () => {
    const { records } = memoryBackend();
    const writers = Array.from({ length: 8 }, () => recordOn(records));
    const count = (more: Readonly<Record<string, unknown>>): number => Number(more["count"] ?? 0);
    await Promise.all(
      writers.map((record) =>
        record.change((now) => ({ ...now, more: { count: count(now.more) + 1 } }), { signal: never }),
      ),
    );
    expect(count((await writers[0]!.read({ signal: never })).more)).toBe(8);
  });

  it("is followed past errors of the store, and a reader that leaves ends the watch", async () => {
    const { records } = memoryBackend();
    let broken = true;
    const armed: AbortSignal[] = [];
    const store: RecordStore = {
      read: async (key, options) => {
        if (broken) throw new ConclaveError("unavailable", "away");
        return records.read(key, options);
      },
      write: (key, expected, text, options) => records.write(key, expected, text, options),
      watch: async (key, wake, options) => {
        armed.push(options.signal);
        await records.watch!(key, wake, options);
      },
      [Symbol.asyncDispose]: async () => {},
    };
    const failures: unknown[] = [];
    const failed = (error: unknown): void => {
      failures.push(error);
      broken = false;
    };
    const options = { signal: never, pollMs: 5, unpushedMs: 5, failed };
    for await (const controls of followControls(recordOn(store), options)) {
      expect(controls).toEqual(NO_CONTROLS);
      break;
    }
    expect(failures).toHaveLength(1);
    expect(armed.every((signal) => signal.aborted)).toBe(true);
  });

  it("has a key that every store takes, also for the longest names", async () => {
    const { records } = memoryBackend();
    const [one, other] = [recordOn(records, "n".repeat(200)), recordOn(records, `${"n".repeat(199)}m`)];
    await one.change((now) => ({ ...now, pause: { since: 1, by } }), { signal: never });
    expect((await other.read({ signal: never })).pause).toBeNull();
    expect((await one.read({ signal: never })).pause).toEqual({ since: 1, by });
  });
});
