/** Runs one test of the conformance suite on a backend with one fault planted in it. */
import { setMaxListeners } from "node:events";
import type { Backend, Candidacy, Hold } from "../../src/seam/backend.js";
import type { Entry, RecordStore } from "../../src/seam/table.js";
import { recordBackend } from "../../src/record/backend.js";
import { textLeases } from "../../src/record/codec.js";
import type { LeaseRecord } from "../../src/record/lease.js";
import { conformanceSuite, FaultSwitch, faultyStore } from "../../src/testing/conformance/index.js";
import type { Faults, Skip } from "../../src/testing/conformance/index.js";
import { TableServer } from "./table.js";
import type { TableOptions } from "./table.js";

export interface Parts {
  readonly leases: RecordStore<LeaseRecord>;
  readonly records: RecordStore;
}

export type Mutant = (server: TableServer) => {
  /** Changes the stores behind the faults: what the server does. */
  readonly parts?: (parts: Parts) => Partial<Parts>;
  /** Changes the stores before the faults: what the client makes of lost answers. */
  readonly client?: (parts: Parts) => Partial<Parts>;
  readonly backend?: (backend: Backend) => Partial<Backend>;
};

export interface Planted {
  readonly table?: TableOptions;
  readonly faults?: (faults: FaultSwitch) => Partial<Faults>;
  /** What the suite printed. */
  readonly print?: (line: string) => void;
  readonly skips?: readonly Skip[];
  /** Short for those that are to be caught by waiting for them. */
  readonly patienceMs?: number;
}

/** A signal that never aborts. */
export const never = new AbortController().signal;
setMaxListeners(0, never); // all mutants share it

/** What the test threw; `undefined` if it passed. */
export async function outcome(title: string, mutant: Mutant, planted: Planted = {}): Promise<unknown> {
  const server = new TableServer(planted.table);
  const faults = new FaultSwitch();
  const bodies = new Map<string, () => Promise<void>>();
  let group = "";
  conformanceSuite({
    backend: async () => openMutant(server, faults, mutant),
    faults: {
      cut: () => faults.cut(),
      deafen: (start) => faults.deafen(start),
      slow: (delayMs) => faults.slow(delayMs),
      blackHole: () => faults.blackHole(),
      heal: () => faults.heal(),
      forget: () => server.forget(),
      step: (ms) => server.step(ms),
      ...planted.faults?.(faults),
    },
    runner: {
      describe: (name, body) => {
        group = name;
        body();
      },
      test: (name, body) => void bodies.set(`${group}: ${name}`, body),
    },
    skips: [{ test: "real processes", reason: "not needed here" }, ...(planted.skips ?? [])],
    print: planted.print ?? (() => {}),
    ...(planted.patienceMs !== undefined && { patienceMs: planted.patienceMs }),
  });
  return bodies.get(title)!().then(
    () => undefined,
    (error: unknown) => error,
  );
}

function openMutant(server: TableServer, faults: FaultSwitch, mutant: Mutant): Backend {
  const { parts, client, backend } = mutant(server);
  const sound = { leases: textLeases(server.texts("leases")), records: server.texts("records") };
  const { leases, records } = { ...sound, ...parts?.(sound) };
  const reached = { leases: faultyStore(leases, faults), records: faultyStore(records, faults) };
  const opened = recordBackend({
    name: "table",
    guarantees: {
      exclusion: "linearizable",
      expiry: "observer",
      token: "record",
      succession: "unordered",
      ttl: { minMs: 100, stepMs: 1 },
    },
    ...reached,
    ...client?.(reached),
  });
  // Not behind a proxy if nothing of it is changed: the suite knows the engine's own backends.
  return backend === undefined ? opened : override(opened, backend(opened));
}

/** The object with some of its members replaced; the rest goes to the original. */
export function override<T extends object>(original: T, members: Partial<T>): T {
  return new Proxy(original, {
    get: (target, name) => {
      const member: unknown = Reflect.get(name in members ? members : target, name);
      return typeof member === "function" ? member.bind(name in members ? members : target) : member;
    },
  });
}

/** A backend whose holds are changed. */
export const holds =
  (change: (hold: Hold, candidacy: Candidacy) => Partial<Hold>): Mutant =>
  () => ({
    backend: (backend) => ({
      campaign: async (candidacy, options) => {
        const hold = await backend.campaign(candidacy, options);
        return hold === null ? null : override(hold, change(hold, candidacy));
      },
    }),
  });

/** Both stores of a backend, changed in the same way before the faults. */
export const clients =
  (change: <R>(store: RecordStore<R>) => Partial<RecordStore<R>>): Mutant =>
  () => ({
    client: ({ leases, records }) => ({
      leases: override(leases, change(leases)),
      records: override(records, change(records)),
    }),
  });

/** A store that writes over whatever is there, whenever `blind` says so. */
export function blindly<R>(store: RecordStore<R>, blind: (record: R) => boolean): RecordStore<R> {
  return override(store, {
    write: async (key, expected, record, options): Promise<Entry<R> | null> => {
      if (!blind(record)) return store.write(key, expected, record, options);
      for (;;) {
        const current = (await store.read(key, options))?.version ?? null;
        const entry = await store.write(key, current, record, options);
        if (entry !== null) return entry;
      }
    },
  });
}
