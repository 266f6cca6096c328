/** The suite bites under faults: backends that are sound until an answer is lost, a clock jumps or a store forgets. */
import { afterAll, describe, expect, it } from "vitest";
import type { RecordStore } from "../../src/seam/table.js";
import { untilAborted } from "../../src/kit/wait.js";
import { ConformanceFailure, conformanceTests } from "../../src/testing/conformance/index.js";
import { blindly, clients, never, outcome, override } from "../support/suite-mutants.js";
import type { Mutant, Planted } from "../support/suite-mutants.js";

const intervals: NodeJS.Timeout[] = [];
afterAll(() => intervals.forEach((interval) => clearInterval(interval)));

/** For faults that are noticed because something does not end. */
const HASTY = { patienceMs: 2_000 };
const LONG_MS = 60_000;
const clock = (test: string): string => `clocks that jump: ${test}`;
const ends = "watches are hints: they end with their signal";
const unheard =
  "a cancelled campaign is gone: a grant whose answer was lost does not lock its own candidate out";

const answersNull = clients((store) => ({
  write: (key, expected, record, options) => store.write(key, expected, record, options).catch(() => null),
}));

/** A driver that knows no signal, in a pool that ends when all its connections have come back. */
function pooled<R>(store: RecordStore<R>): Partial<RecordStore<R>> {
  const busy = new Set<Promise<unknown>>();
  const query = <T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> => {
    const running = run().finally(() => busy.delete(running));
    busy.add(running);
    return untilAborted(signal, running);
  };
  return {
    read: (key, { signal }) => query(signal, () => store.read(key, { signal: never })),
    write: (key, expected, record, { signal }) =>
      query(signal, () => store.write(key, expected, record, { signal: never })),
    [Symbol.asyncDispose]: async () => void (await Promise.allSettled(busy)),
  };
}

/** One connection forever: once a call on it was given up, nothing comes back on it any more. */
function oneConnection<R>(store: RecordStore<R>): Partial<RecordStore<R>> {
  let dead = false;
  const ask = async <T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> => {
    if (dead) return untilAborted(signal, new Promise<never>(() => {}));
    return run().catch((error: unknown) => {
      dead ||= signal.aborted;
      throw error;
    });
  };
  return {
    read: (key, options) => ask(options.signal, () => store.read(key, options)),
    write: (key, expected, record, options) =>
      ask(options.signal, () => store.write(key, expected, record, options)),
  };
}

const MUTANTS: [what: string, test: string, mutant: Mutant, planted?: Planted][] = [
  [
    "says that nothing was written when it cannot reach the store",
    "not knowing is a throw: when the store cannot be reached",
    answersNull,
  ],
  [
    "says that nothing was written when the answer is lost",
    "not knowing is a throw: when the answer is lost",
    answersNull,
  ],
  [
    "says that nothing was written on a silent connection",
    "not knowing is a throw: when the connection is silent for good",
    answersNull,
  ],
  [
    "says that nothing was written when its connection breaks",
    "not knowing is a throw: when the connection breaks after the request",
    clients((store) => ({
      write: (key, expected, record, options) =>
        store.write(key, expected, record, options).catch((error: unknown) => {
          if (options.signal.aborted) throw error;
          return null;
        }),
    })),
  ],
  [
    "sends a write a second time when its connection breaks",
    "not knowing is a throw: when the connection breaks after the request",
    clients((store) => ({
      write: (key, expected, record, options) =>
        store.write(key, expected, record, options).catch((error: unknown) => {
          if (options.signal.aborted) throw error;
          return store.write(key, expected, record, options);
        }),
    })),
  ],
  [
    "finds no record when it cannot read",
    "not knowing is a throw: when the store cannot be reached",
    clients((store) => ({ read: (key, options) => store.read(key, options).catch(() => null) })),
  ],
  [
    "does not know a grant of its own whose answer was lost",
    unheard,
    () => {
      let writes = 0;
      return {
        parts: ({ leases }) => ({
          leases: override(leases, {
            write: (key, expected, record, options) => {
              const holder = record.holder && `${record.holder}-${writes++}`;
              return leases.write(key, expected, { ...record, holder }, options);
            },
          }),
        }),
      };
    },
  ],
  [
    "is tested by a fault that does not begin between a read and a write",
    unheard,
    () => ({}),
    { faults: (faults) => ({ deafen: () => faults.deafen() }) },
  ],
  [
    "goes on watching when nobody listens, and does not end",
    ends,
    clients((store) => ({ watch: (key, wake) => store.watch!(key, wake, { signal: never }) })),
    { table: { watch: true } },
  ],
  [
    "goes on waking after its watch has ended",
    ends,
    clients((store) => ({
      watch: (key, wake, { signal }) => {
        void store.watch!(key, wake, { signal: never });
        return untilAborted(signal, new Promise<void>(() => {}));
      },
    })),
    { table: { watch: true } },
  ],
  [
    "closes only when all its calls have come back",
    "closing leaves nothing behind: with calls that never reached the store",
    clients(pooled),
  ],
  [
    "closes only when a dead connection has answered",
    "closing leaves nothing behind: with calls on a connection that died without a word",
    clients(pooled),
  ],
  [
    "closes only when its campaigns have ended",
    "closing leaves nothing behind: with calls under way",
    () => ({
      backend: (backend) => {
        const running: Promise<unknown>[] = [];
        return {
          campaign: (candidacy, options) => {
            const campaign = backend.campaign(candidacy, { ...options, wait: false }).then(async (hold) => {
              if (options.wait) await untilAborted(options.signal, new Promise(() => {})).catch(() => {});
              return hold;
            });
            running.push(campaign);
            return options.wait && candidacy.retryMs < 60_000
              ? backend.campaign(candidacy, options)
              : campaign;
          },
          [Symbol.asyncDispose]: async () => void (await Promise.allSettled(running)),
        };
      },
    }),
  ],
  [
    "goes on using a connection that died",
    "lost only if certain: a connection that died without a word is not a loss, and is replaced",
    clients(oneConnection),
  ],
  [
    "extends a hold that the store has forgotten",
    "a store that forgets: a forgotten hold is not extended",
    () => ({ parts: ({ leases }) => ({ leases: blindly(leases, ({ token }) => token !== null) }) }),
  ],
  [
    "creates a record anew that was to be updated",
    "a store that forgets: nothing is written on a forgotten version",
    () => ({
      parts: ({ records }) => ({
        records: override(records, {
          write: async (key, expected, record, options) =>
            (await records.write(key, expected, record, options)) ??
            records.write(key, null, record, options),
        }),
      }),
    }),
  ],
  [
    "cannot tell that a lease was renewed when the store's clock is set forward",
    "a store whose clock jumps: set forward, it ends no lease that a waiting candidate saw renewed",
    (server) => ({
      parts: () => {
        const leases = server.timedLeases();
        const read: typeof leases.read = async (key, options) => {
          const entry = await leases.read(key, options);
          return entry && { ...entry, renewalId: "always the same" };
        };
        return { leases: override(leases, { read }) };
      },
    }),
  ],
];

describe("the conformance suite notices a backend that", () => {
  it.concurrent.each(MUTANTS.map(([what, title, mutant, planted]) => ({ what, title, mutant, planted })))(
    "$what",
    async ({ title, mutant, planted }) => {
      expect(conformanceTests()).toContain(title);
      expect(await outcome(title, mutant, { ...HASTY, ...planted })).toBeInstanceOf(ConformanceFailure);
    },
    LONG_MS,
  );

  // Not at the same time as the others: the date is the whole process's.
  const dated: Mutant = (server) => ({ parts: () => ({ leases: server.timedLeases() }) });
  const table = { clock: () => Date.now() };

  it("times leases by a date that is set forward", async () => {
    const title = clock("the date of this machine set forward ends no lease");
    expect(await outcome(title, dated, { ...HASTY, table })).toBeInstanceOf(ConformanceFailure);
    expect(await outcome(title, dated)).toBeUndefined();
  });

  it("times leases by a date that is set back, and shows a change at every read", async () => {
    const title = clock("the date of this machine set back keeps nobody leading");
    // Without the changes a candidate that waits goes by its own clock: then the date alone does no harm.
    let reads = 0;
    const changing: Mutant = (server) => {
      const leases = server.timedLeases();
      const read: typeof leases.read = async (...call) => {
        const entry = await leases.read(...call);
        return entry && { ...entry, renewalId: `${++reads}` };
      };
      return { parts: () => ({ leases: { ...leases, read } }) };
    };
    expect(await outcome(title, changing, { ...HASTY, table })).toBeInstanceOf(ConformanceFailure);
    expect(await outcome(title, dated, { ...HASTY, table })).toBeUndefined();
  });

  it("keeps a timer for every call that was aborted", async () => {
    const leaky = clients((store) => ({
      read: (key, options) => {
        options.signal.addEventListener("abort", () => intervals.push(setInterval(() => {}, 60_000)));
        return store.read(key, options);
      },
    }));
    const error = await outcome(
      "closing leaves nothing behind: with calls that were just aborted",
      leaky,
      HASTY,
    );
    expect(error).toBeInstanceOf(ConformanceFailure);
    expect(String(error)).toContain("Timeout");
  });
});

describe("the conformance suite", () => {
  it("names what hangs in the clean-up", async () => {
    const hangs: Mutant = () => ({ backend: () => ({ [Symbol.asyncDispose]: () => new Promise(() => {}) }) });
    const error = await outcome("two names are two elections: a plain name works", hangs, HASTY);
    expect(String(error)).toMatch(/closing a backend after the test: it did not end within \d+ s/);
  });

  it.each<[string, Mutant, string]>([
    [
      "never wakes",
      clients(() => ({
        watch: (_key, _wake, { signal }) => untilAborted(signal, new Promise<void>(() => {})),
      })),
      "missed 3 of 3 changes",
    ],
    [
      "wakes when it is armed and never again",
      clients(() => ({
        watch: (_key, wake, { signal }) => {
          wake();
          return untilAborted(signal, new Promise<void>(() => {}));
        },
      })),
      "missed 3 of 3 changes",
    ],
  ])("warns of a watch that %s", async (_, mutant, warning) => {
    const lines: string[] = [];
    const title = "watches are hints: they wake when another client writes (a warning if not)";
    const print = (line: string): void => void lines.push(line);
    expect(await outcome(title, mutant, { ...HASTY, table: { watch: true }, print })).toBeUndefined();
    expect(lines.filter((line) => line.startsWith("warning:")).join("\n")).toContain(warning);
    const quiet: string[] = [];
    await outcome(title, () => ({}), { table: { watch: true }, print: (line) => void quiet.push(line) });
    expect(quiet.filter((line) => line.startsWith("warning:"))).toEqual([]);
  });

  it("has nothing against a sound backend under the same faults", async () => {
    const titles = [...new Set(MUTANTS.map(([, title]) => title))].filter(
      (title) => !title.includes("closing"),
    );
    const errors = await Promise.all(
      titles.map((title) => outcome(title, () => ({}), { table: { watch: true } })),
    );
    expect(errors.filter((error) => error !== undefined)).toEqual([]);
  });
});
