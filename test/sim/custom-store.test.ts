/** A store of somebody else's in the simulator: sound ones pass, and each bug of a store shows. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { recordBackend, textLeases } from "../../src/backend.js";
import type { Backend, Entry, RecordStore } from "../../src/backend.js";
import { planOf, simulate } from "../../src/testing/index.js";
import type {
  SimulatedHost,
  SimulatedProcess,
  SimulatedStore,
  SimulatedWire,
} from "../../src/testing/index.js";
import { useFastAbort, useRealAbort } from "./fast-abort.js";
import { rejections } from "./rejections.js";

interface Row {
  readonly version: bigint;
  readonly record: string;
  /** By the store's clock, and in true time. */
  readonly at: number;
  readonly time: number;
}

/** What may be wrong with a store. */
interface Bugs {
  readonly compare?: boolean;
  readonly versions?: boolean;
  /** How fast its clock is believed to run. */
  readonly rate?: number;
}

class TableModel implements SimulatedStore {
  readonly #host: SimulatedHost;
  readonly #bugs: Bugs;
  readonly #timed: boolean;
  readonly #rows = new Map<string, Row[]>();
  #version = 0n;

  constructor(host: SimulatedHost, timed: boolean, bugs: Bugs = {}) {
    this.#host = host;
    this.#timed = timed;
    this.#bugs = bugs;
  }

  connect({ clock, wire }: SimulatedProcess): Backend {
    return recordBackend({
      name: "table",
      guarantees: {
        exclusion: "linearizable",
        expiry: this.#timed ? "store" : "observer",
        token: "record",
        succession: "unordered",
        ttl: { minMs: 100, stepMs: 1 },
      },
      leases: textLeases(this.#client(wire)),
      records: this.#client(wire),
      clock,
    });
  }

  #client(wire: SimulatedWire): RecordStore {
    return {
      read: (key, { signal }) => {
        const lagMs = wire.staleness();
        return wire.call("read", () => this.#read(key, lagMs), signal);
      },
      write: async (key, expected, record, { signal }) => {
        return wire.call("write", () => this.#write(key, expected, record), signal);
      },
      [Symbol.asyncDispose]: async () => {},
    };
  }

  #read(key: string, lagMs: number): Entry | null {
    const until = this.#host.trueTime() - lagMs;
    const row = this.#rows.get(key)?.findLast(({ time }) => time <= until);
    if (row === undefined) return null;
    const ageMs = (this.#host.now() - row.at) * (this.#bugs.rate ?? 1);
    return { version: row.version, record: row.record, ...(this.#timed && { ageMs }) };
  }

  #write(key: string, expected: bigint | null, record: string): Entry | null {
    const rows = this.#rows.get(key) ?? [];
    const current = rows.at(-1)?.version ?? null;
    if (current !== expected && this.#bugs.compare !== false) return null;
    // A version of its own for each holder: it comes again.
    const version = this.#bugs.versions === false ? ((current ?? 0n) % 7n) + 1n : ++this.#version;
    rows.push({ version, record, at: this.#host.now(), time: this.#host.trueTime() });
    this.#rows.set(key, rows);
    return { version, record };
  }
}

const plan = (seed: number): ReturnType<typeof planOf> =>
  planOf(seed, { stores: ["observer"], subject: "election" });

async function violationWithin(seeds: number, timed: boolean, bugs: Bugs): Promise<string | undefined> {
  for (let seed = 1; seed <= seeds; seed++) {
    const store = (host: SimulatedHost): SimulatedStore => new TableModel(host, timed, bugs);
    const { violation } = await simulate(plan(seed), { store, rejections });
    if (violation !== undefined) return violation.rule;
  }
  return undefined;
}

describe("a store of one's own in the simulator", () => {
  beforeAll(useFastAbort);
  afterAll(useRealAbort);

  test.each([
    ["timed by its observers", false],
    ["that knows how old a record is", true],
  ])(
    "a sound one, %s, passes, and every run can be repeated",
    async (_, timed) => {
      const store = (host: SimulatedHost): SimulatedStore => new TableModel(host, timed);
      let terms = 0;
      for (let seed = 1; seed <= 40; seed++) {
        const outcome = await simulate(plan(seed), { store, rejections });
        expect(outcome.violation, `seed ${seed}`).toBeUndefined();
        terms += outcome.terms;
      }
      expect(terms).toBeGreaterThan(5 * 40);
      const [first, second] = [await simulate(plan(3), { store }), await simulate(plan(3), { store })];
      expect(second.hash).toBe(first.hash);
    },
    120_000,
  );

  test.each<[string, boolean, Bugs]>([
    ["writes without comparing", false, { compare: false }],
    ["gives versions out again", false, { versions: false }],
    ["ends leases early", true, { rate: 3 }],
  ])(
    "one that %s is caught",
    async (_, timed, bugs) => {
      expect(await violationWithin(60, timed, bugs)).toBeDefined();
    },
    120_000,
  );
});
