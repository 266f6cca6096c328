/** Handing leadership to a named candidate. On a virtual clock. */
import { beforeEach, describe, expect, it } from "vitest";
import { both, Election, Lock, memoryBackend, NotLeaderError } from "../../src/index.js";
import type {
  Backend,
  ElectionEvents,
  ElectionOptions,
  TransferOptions,
  TransferResult,
} from "../../src/index.js";
import { VirtualClock } from "../../src/testing/index.js";

const TTL_MS = 3_000;
const RETRY_MS = 600;

let clock: VirtualClock;
let backend: Backend;

beforeEach(() => {
  clock = new VirtualClock();
  backend = memoryBackend({ clock });
});

const open = (id: string, over: Partial<ElectionOptions> = {}): Election =>
  new Election({ name: "e", backend, id, ttlMs: TTL_MS, retryMs: RETRY_MS, clock, ...over });

async function lead(election: Election) {
  const term = election.campaign();
  await clock.advance(0);
  return term;
}

/** Stands in the background; the names of those who led, in their order. */
function stand(elections: readonly Election[], led: string[]): void {
  for (const election of elections)
    void election.campaign().then(
      () => led.push(election.candidate),
      () => {},
    );
}

describe("a transfer", () => {
  it.each(["full", "readable"])("makes the candidate lead that was named by its %s id", async (part) => {
    const [a, b, c, d] = [open("a"), open("b"), open("c"), open("d")];
    const told: ElectionEvents["transferred"][] = [];
    a.on("transferred", (event) => told.push(event));
    const term = await lead(a);
    const led: string[] = [];
    stand([b, c, d], led);
    await clock.advance(10);
    const result = term.transfer(part === "full" ? c.candidate : "c");
    await clock.advance(RETRY_MS * 2);
    expect([await result, led, term.end?.reason]).toEqual(["taken", [c.candidate], "resigned"]);
    expect(told).toEqual([
      { term, to: part === "full" ? c.candidate : "c", result: "taken", tookMs: told[0]?.tookMs },
    ]);
    await Promise.all([a, b, c, d].map((election) => election.close()));
  });

  it("to a candidate that is dead falls back to anybody in time, and says so", async () => {
    const [a, b] = [open("a"), open("b")];
    const term = await lead(a);
    const led: string[] = [];
    stand([b], led);
    const result = term.transfer("gone", { timeoutMs: 2_000 });
    await clock.advance(1_999);
    expect(led).toEqual([]);
    await clock.advance(1 + RETRY_MS * 1.25);
    expect([await result, led]).toEqual(["timeout", [b.candidate]]);
    await Promise.all([a.close(), b.close()]);
  });

  it("that the store cannot carry out is a resignation, and says who leads", async () => {
    const deaf: Backend = {
      ...{ name: "deaf", guarantees: backend.guarantees },
      campaign: async (candidacy, options) => {
        const hold = await backend.campaign(candidacy, options);
        return (
          hold &&
          Object.assign(Object.create(hold), {
            ...{ token: hold.token, asked: hold.asked, ttlMs: hold.ttlMs },
            renew: hold.renew.bind(hold),
            proclaim: hold.proclaim.bind(hold),
            release: ({ signal }: { signal: AbortSignal }) => hold.release({ signal }),
          })
        );
      },
      observe: (election, options) => backend.observe(election, options),
      [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
    };
    const [a, b] = [open("a", { backend: deaf }), open("b", { backend: deaf })];
    const term = await lead(a);
    const led: string[] = [];
    stand([b], led);
    const result = term.transfer("c");
    await clock.advance(RETRY_MS * 2);
    expect([await result, led]).toEqual(["taken-by-other", [b.candidate]]);
    await Promise.all([a.close(), b.close()]);
  });

  it("stops the work first, and hands over only then", async () => {
    const [a, b] = [open("a"), open("b")];
    const log: string[] = [];
    let stopped = (): void => {};
    const running = a.run(
      (term) =>
        new Promise<void>((resolve) => {
          term.signal.addEventListener("abort", () => log.push("told"));
          stopped = resolve;
        }),
    );
    await clock.advance(0);
    void b.campaign().then(() => log.push("b leads"));
    const result = a.transfer("b");
    await clock.advance(200);
    expect(log).toEqual(["told"]);
    log.push("stopped");
    stopped();
    await clock.advance(RETRY_MS);
    expect([await result, log]).toEqual(["taken", ["told", "stopped", "b leads"]]);
    const closing = Promise.all([a.close(), b.close()]);
    await clock.advance(10_000);
    await Promise.all([closing, running]);
  });

  it("whose work does not stop waits for the end of the lease, and its result is what is seen then", async () => {
    const [a, b] = [open("a", { drainMs: 500 }), open("b")];
    const running = a.run(() => new Promise<void>(() => {}));
    await clock.advance(0);
    const led: string[] = [];
    stand([b], led);
    let result: TransferResult | undefined;
    void a.transfer("b").then((answer) => (result = answer));
    await clock.advance(500 + 1_500);
    expect([result, led]).toEqual([undefined, []]);
    await clock.advance(TTL_MS);
    expect([result, led]).toEqual(["taken", [b.candidate]]);
    const closing = Promise.all([a.close(), b.close()]);
    await clock.advance(10_000);
    await Promise.all([closing, running]);
  });

  it("may be awaited by the work itself by mistake: it ends all the same", async () => {
    const [a, b] = [open("a", { drainMs: 500 }), open("b")];
    const results: TransferResult[] = [];
    void a.run(async (term) => void results.push(await term.transfer("b")));
    const led: string[] = [];
    await clock.advance(1);
    stand([b], led);
    await clock.advance(500 + 2 * TTL_MS);
    expect([results, led]).toEqual([["taken"], [b.candidate]]);
    const closing = Promise.all([a.close(), b.close()]);
    await clock.advance(10_000);
    await closing;
  });

  it("ends with a close meanwhile, and does not reject", async () => {
    const a = open("a");
    const term = await lead(a);
    const result = term.transfer("gone", { timeoutMs: 60_000 });
    await clock.advance(100);
    await a.close();
    expect(await result).toBe("timeout");
    expect(clock.timers).toBe(0);
  });

  it("whose result nobody waits for rejects with the caller's reason; the term is over", async () => {
    const a = open("a");
    const term = await lead(a);
    const stop = new AbortController();
    const result = term.transfer("gone", { timeoutMs: 60_000, signal: stop.signal });
    result.catch(() => {});
    await clock.advance(100);
    stop.abort(new Error("no time"));
    await expect(result).rejects.toThrow("no time");
    expect(term.held).toBe(false);
    await a.close();
  });

  it.each([
    ["a", {}],
    ["", {}],
    ["b\n", {}],
    [7, {}],
    ["x".repeat(201), {}],
    ["b", { timeoutMs: 0 }],
    ["b", { timeoutMs: 60_001 }],
    ["b", { timeoutMs: Number.NaN }],
    ["b", { timeoutMs: "5" }],
  ] as readonly (readonly [unknown, { timeoutMs?: unknown }])[])(
    "to %j with %j is refused, and changes nothing",
    async (to, options) => {
      const a = open("a");
      const term = await lead(a);
      const asked = term.transfer(to as string, options as TransferOptions);
      await expect(asked).rejects.toMatchObject({ code: "invalid" });
      await expect(term.transfer(a.candidate)).rejects.toThrow("this candidate itself");
      expect(term.held).toBe(true);
      await a.close();
    },
  );

  it("needs a term", async () => {
    const a = open("a");
    await expect(a.transfer("b")).rejects.toMatchObject({ code: "state" });
    const term = await lead(a);
    await term.resign();
    await expect(term.transfer("b")).rejects.toBeInstanceOf(NotLeaderError);
    await a.close();
  });

  it("works for a lock", async () => {
    const [a, b, c] = ["a", "b", "c"].map(
      (id) => new Lock({ name: "l", backend, id, ttlMs: TTL_MS, retryMs: RETRY_MS, clock }),
    );
    const term = await a!.acquire();
    const got: string[] = [];
    for (const [id, lock] of [
      ["b", b],
      ["c", c],
    ] as const)
      void lock!.acquire().then(
        () => got.push(id),
        () => {},
      );
    await clock.advance(0);
    const result = term.transfer("c");
    await clock.advance(RETRY_MS * 2);
    expect([await result, got]).toEqual(["taken", ["c"]]);
    const closing = Promise.all([a!.close(), b!.close(), c!.close()]);
    await clock.advance(1);
    await closing;
  });

  it("passes through two stores at once", async () => {
    backend = both(memoryBackend({ clock }), memoryBackend({ clock }), { clock });
    const [a, b, c] = [open("a"), open("b"), open("c")];
    const term = await lead(a);
    const led: string[] = [];
    stand([b, c], led);
    await clock.advance(10);
    const result = term.transfer("c");
    await clock.advance(RETRY_MS * 2);
    expect([await result, led]).toEqual(["taken", [c.candidate]]);
    const closing = Promise.all([a.close(), b.close(), c.close()]);
    await clock.advance(10_000);
    await closing;
  });
});
