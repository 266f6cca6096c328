import { afterEach, describe, expect, it } from "vitest";
import { memoryBackend } from "../../src/backends/memory/index.js";
import { readHistory } from "../../src/control/history.js";
import { ControlRecord } from "../../src/control/record.js";
import { answerTo, askLeader } from "../../src/control/requests.js";
import { Election } from "../../src/election/election.js";
import type { ElectionOptions } from "../../src/api/options.js";
import type { Term } from "../../src/api/term.js";
import { systemClock } from "../../src/kit/clock.js";
import { ConclaveError } from "../../src/kit/errors.js";
import { onAbort } from "../../src/kit/wait.js";
import type { Backend, BackendWithRecords } from "../../src/seam/backend.js";
import type { RecordStore } from "../../src/seam/table.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { until } from "../support/until.js";

const never = new AbortController().signal;
const opened: Election[] = [];
afterEach(async () => {
  for (const election of opened.splice(0)) await election.close();
});

function stand(backend: Backend, id: string, options: Partial<ElectionOptions> = {}): Election {
  const timing = { ttlMs: 3_000, retryMs: 50 };
  const election = new Election({ name: "mailer", backend, id, controls: true, ...timing, ...options });
  opened.push(election);
  return election;
}

function controlsOf(backend: BackendWithRecords): ControlRecord {
  return new ControlRecord({
    records: backend.records,
    election: "mailer",
    clock: systemClock,
    attemptMs: 1_000,
  });
}

const working = (term: Term): Promise<void> =>
  new Promise((resolve) => onAbort(term.signal, () => resolve()));
const pause = (record: ControlRecord, on: boolean) =>
  record.change((now) => ({ ...now, pause: on ? { since: 1, by: "ops" } : null }), { signal: never });
const termOf = async (election: Election): Promise<Term> => {
  await until(() => election.leading);
  return election.term!;
};

/** The same backend with other records. */
function withRecords(backend: BackendWithRecords, changed: Partial<RecordStore>): BackendWithRecords {
  const { records } = backend;
  const store: RecordStore = {
    read: (key, options) => records.read(key, options),
    write: (key, expected, text, options) => records.write(key, expected, text, options),
    watch: (key, wake, options) => records.watch!(key, wake, options),
    [Symbol.asyncDispose]: async () => {},
    ...changed,
  };
  return new Proxy(backend, {
    get: (target, name) => {
      if (name === "records") return store;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

describe("a leader that is asked to hand over", () => {
  it("stops its work and names the heir; the one that was named leads next", async () => {
    const backend = memoryBackend();
    const [a, b, c] = [stand(backend, "a"), stand(backend, "b"), stand(backend, "c")];
    void a.run(working);
    const first = await termOf(a);
    for (const other of [b, c]) void other.run(working);
    const results: unknown[] = [];
    a.on("transferred", ({ to, result }) => results.push([to, result]));
    const record = controlsOf(backend);
    const ask = { kind: "transfer", to: "c" } as const;
    const request = await askLeader(record, ask, first, { signal: never, by: "ops" });
    expect(await answerTo(record, request.id, { signal: never, limitMs: 5_000 })).toMatchObject({
      outcome: "accepted",
      detail: "handing over to c",
    });
    expect((await termOf(c)).token).toBe(first.token + 2n);
    await until(() => results.length > 0);
    expect(results).toEqual([["c", "taken"]]);
  });

  it("refuses what cannot be done, and leads on", async () => {
    const backend = memoryBackend();
    const a = stand(backend, "a");
    void a.run(working);
    const term = await termOf(a);
    const record = controlsOf(backend);
    const ask = { kind: "transfer", to: "a" } as const;
    const request = await askLeader(record, ask, term, { signal: never, by: "ops" });
    expect(await answerTo(record, request.id, { signal: never, limitMs: 5_000 })).toMatchObject({
      outcome: "refused",
      detail: expect.stringContaining("this candidate itself") as string,
    });
    expect(term.held).toBe(true);
  });
});

describe("a leader that is asked to resign", () => {
  it("stops its work, hands over and answers; the next leader is left alone", async () => {
    const backend = memoryBackend();
    const [a, b] = [stand(backend, "a"), stand(backend, "b")];
    void a.run(working);
    const first = await termOf(a);
    void b.run(working);
    const record = controlsOf(backend);
    const request = await askLeader(record, { kind: "resign" }, first, { signal: never, by: "ops" });
    const end = await first.ended;
    expect(end).toEqual({ reason: "resigned", detail: "asked to resign by ops", drained: true });
    expect(await answerTo(record, request.id, { signal: never, limitMs: 5_000 })).toMatchObject({
      outcome: "accepted",
    });
    const second = await termOf(b);
    expect(second.token).toBeGreaterThan(first.token);
    expect(second.signal.aborted).toBe(false);
  });

  it("waits for the owner of a term from campaign(), who alone knows when its work has stopped", async () => {
    const backend = memoryBackend();
    const a = stand(backend, "a");
    const term = await a.campaign();
    await askLeader(controlsOf(backend), { kind: "resign" }, term, { signal: never, by: "ops" });
    await new Promise<void>((resolve) => onAbort(term.signal, resolve));
    expect(term.held).toBe(true);
    await term.resign();
    expect((await term.ended).reason).toBe("resigned");
  });

  it("does not hear of it without `controls`", async () => {
    const backend = memoryBackend();
    const a = stand(backend, "a", { controls: false });
    const term = await a.campaign();
    const record = controlsOf(backend);
    const request = await askLeader(record, { kind: "resign" }, term, { signal: never, by: "ops" });
    expect(await answerTo(record, request.id, { signal: never, limitMs: 300 })).toBeNull();
    expect(term.held).toBe(true);
  });
});

describe("while an election is paused", () => {
  it("its leader goes on; who wins in the queue gives it back without a term, and leads after the end of the pause", async () => {
    const backend = memoryBackend();
    const [a, b] = [stand(backend, "a"), stand(backend, "b")];
    const first = await a.campaign();
    const elected: Term[] = [];
    b.on("elected", ({ term }) => elected.push(term));
    void b.run(working);
    // It has waited longer than the look before its campaign counts: it looks again when it is granted.
    await new Promise((resolve) => setTimeout(resolve, 100));
    const record = controlsOf(backend);
    await pause(record, true);
    expect(first.held).toBe(true);
    await first.resign();
    // A candidate that knows nothing of pauses gets it: b has given it back.
    const other = stand(backend, "c", { controls: false });
    const unaware = await other.campaign();
    expect(elected).toEqual([]);
    await unaware.resign();
    await pause(record, false);
    await until(() => elected.length > 0);
    expect(elected[0]!.held).toBe(true);
  });

  it("nobody campaigns, and one attempt says no", async () => {
    const backend = memoryBackend();
    const record = controlsOf(backend);
    await pause(record, true);
    const a = stand(backend, "a");
    expect(await a.tryCampaign()).toBeNull();
    const waiting = a.campaign();
    expect(await a.leader()).toBeNull();
    await pause(record, false);
    expect((await waiting).held).toBe(true);
  });

  it("a look that was answered late says nothing of the pause that came meanwhile: there is another before the term", async () => {
    const clock = new VirtualClock();
    const backend = memoryBackend({ clock });
    const record = controlsOf(backend);
    let looks = 0;
    const read: RecordStore["read"] = async (key, options) => {
      const entry = await backend.records.read(key, options);
      if (++looks > 1) return entry;
      await pause(record, true);
      await clock.advance(100);
      return entry;
    };
    const a = stand(withRecords(backend, { read }), "a", { clock });
    expect(await a.tryCampaign()).toBeNull();
    expect(looks).toBe(2);
    expect(a.leading).toBe(false);
  });

  it("its leader hands over to nobody: neither when its program says so, nor when it is asked", async () => {
    const backend = memoryBackend();
    const [a, b] = [stand(backend, "a"), stand(backend, "b")];
    void a.run(working);
    const term = await termOf(a);
    void b.run(working);
    const record = controlsOf(backend);
    await pause(record, true);
    const why = '"mailer" is paused: `conclave unpause mailer` first';
    const ask = { kind: "transfer", to: "b" } as const;
    const request = await askLeader(record, ask, term, { signal: never, by: "ops" });
    expect(await answerTo(record, request.id, { signal: never, limitMs: 5_000 })).toMatchObject({
      ...{ outcome: "refused", detail: why },
    });
    await expect(a.transfer("b")).rejects.toMatchObject({ code: "state", message: why });
    expect(term.held).toBe(true);
    await pause(record, false);
    // As soon as it has read that.
    const refusal = (): Promise<unknown> => a.transfer("b").catch((error: Error) => error.message);
    await until(async () => (await refusal()) !== why);
  });

  it("its leader does not hand over to a higher priority", async () => {
    const backend = memoryBackend();
    const standing = { ttlMs: 600, retryMs: 50, minTermMs: 0 };
    const low = stand(backend, "low", { ...standing, priority: 1 });
    void low.run(working);
    const term = await termOf(low);
    const record = controlsOf(backend);
    await pause(record, true);
    const high = stand(backend, "high", { ...standing, priority: 9 });
    void high.run(working);
    await until(async () => (await low.candidates()).length === 2);
    // A challenger is due after two ttls; the end of the term would come with the next beat.
    const ended = term.ended.then(() => "ended");
    const wait = new Promise((resolve) => setTimeout(resolve, 4 * standing.ttlMs));
    expect(await Promise.race([ended, wait])).toBeUndefined();
    await pause(record, false);
    await until(() => high.leading);
  });

  it("a campaign that waits for the end of it can be aborted, and closed", async () => {
    const backend = memoryBackend();
    await pause(controlsOf(backend), true);
    const a = stand(backend, "a");
    const stop = new AbortController();
    const waiting = a.campaign({ signal: stop.signal });
    setTimeout(() => stop.abort(new Error("enough")), 50);
    await expect(waiting).rejects.toThrow("enough");
    const again = a.campaign();
    setTimeout(() => void a.close(), 50);
    await expect(again).rejects.toMatchObject({ code: "state" });
  });
});

describe("records that cannot be read", () => {
  it("for now: nobody is elected before it is known whether there is a pause", async () => {
    const backend = memoryBackend();
    let away = true;
    const read: RecordStore["read"] = async (key, options) => {
      if (away) throw new ConclaveError("unavailable", "away");
      return backend.records.read(key, options);
    };
    const a = stand(withRecords(backend, { read }), "a");
    const errors: unknown[] = [];
    a.on("error", ({ error }) => errors.push(error));
    void a.run(working);
    await until(() => errors.length > 0);
    expect(a.leading).toBe(false);
    away = false;
    await until(() => a.leading);
  });

  it("for good: the election goes on, and the log says that operators are not heard", async () => {
    const backend = memoryBackend();
    const read: RecordStore["read"] = async () => {
      throw new ConclaveError("forbidden", "no permission for records");
    };
    const lines: string[] = [];
    const logger = { debug() {}, info() {}, warn() {}, error: (line: string) => void lines.push(line) };
    const a = stand(withRecords(backend, { read }), "a", { logger });
    expect((await a.campaign()).held).toBe(true);
    expect(lines.join("\n")).toMatch("cannot be followed: no permission for records");
  });
});

describe("the history of an election", () => {
  it("has each term with its end; one whose leader told no end is closed by the next", async () => {
    const backend = memoryBackend();
    const options = { history: true, controls: false };
    const a = stand(backend, "a", options);
    const first = await a.campaign();
    await until(async () => (await readHistory(backend, "mailer")) !== null);
    expect((await readHistory(backend, "mailer"))!.terms).toMatchObject([{ reason: null, lastedMs: null }]);
    await first.resign();
    await a.close();
    // A leader whose process dies: its end is never written.
    const crashed = withRecords(backend, {
      write: (key, expected, text, call) =>
        text.includes('"closed"') ? new Promise(() => {}) : backend.records.write(key, expected, text, call),
    });
    const b = stand(crashed, "b", options);
    await b.campaign();
    await until(async () => (await readHistory(backend, "mailer"))!.terms.length === 2);
    await b.close();
    const c = stand(backend, "c", options);
    await c.campaign();
    await c.close();
    const history = await readHistory(backend, "mailer");
    expect(history).toMatchObject({ recorded: 3, changes: 2 });
    expect(history!.terms.map(({ reason }) => reason)).toEqual(["resigned", "not-recorded", "closed"]);
    expect(history!.terms[0]!.lastedMs).toBeGreaterThanOrEqual(0);
    expect(history!.terms[1]!.lastedMs).toBeNull();
    const tokens = history!.terms.map(({ token }) => token);
    expect(tokens).toEqual([...tokens].sort((x, y) => Number(x - y)));
  });

  it("keeps the newest 50 terms and counts all", async () => {
    const backend = memoryBackend();
    const a = stand(backend, "a", { history: true, controls: false });
    for (let i = 0; i < 53; i++) await (await a.campaign()).resign();
    await a.close();
    expect(await readHistory(backend, "mailer")).toMatchObject({ recorded: 53, changes: 0 });
    expect((await readHistory(backend, "mailer"))!.terms).toHaveLength(50);
  });

  it("that cannot be written ends nothing, delays nothing and is logged", async () => {
    const backend = memoryBackend();
    const lines: string[] = [];
    const logger = { debug() {}, info() {}, warn: (line: string) => void lines.push(line), error() {} };
    const stuck: RecordStore["write"] = () => new Promise(() => {});
    const broken = withRecords(backend, { write: stuck });
    const a = stand(broken, "a", { history: true, controls: false, logger, attemptMs: 200 });
    const term = await a.campaign();
    expect(term.held).toBe(true);
    const since = performance.now();
    await term.resign();
    expect(performance.now() - since).toBeLessThan(200);
    await a.close();
    expect(lines.join("\n")).toMatch(/could not be written into the history/);
  });

  it("and requests need a backend with records", () => {
    const backend = { ...memoryBackend(), records: undefined, campaign: async () => null };
    const options = { name: "x", backend: Object.assign(Object.create(memoryBackend()), backend) as Backend };
    expect(() => new Election({ ...options, history: true })).toThrow(/keeps? records/);
    expect(() => new Election({ ...options, controls: true })).toThrow(/keeps? records/);
  });
});
