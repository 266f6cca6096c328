/** The four stores that candidates stand before, each with its way of being reached and of going wrong. */
import { etcdBackend } from "../../backends/etcd/index.js";
import { Keys } from "../../backends/etcd/keys.js";
import { decodeEnvelope } from "../../backends/file/envelope.js";
import { fileBackend } from "../../backends/file/index.js";
import { parseListing } from "../../backends/file/names.js";
import type { Backend, Guarantees } from "../../seam/backend.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import { recordBackend } from "../../record/backend.js";
import { decodeLease, textLeases } from "../../record/codec.js";
import type { LeaseRecord } from "../../record/lease.js";
import { SimClock } from "./clock.js";
import { Disk, DiskCalls } from "./disk.js";
import { EtcdServer } from "./etcd-server.js";
import { MetTokens } from "./met-tokens.js";
import type { Monitor } from "./monitor.js";
import { Link } from "./network.js";
import type { StoreHost, Trouble } from "./network.js";
import type { SimProcess } from "./node.js";
import { drawRate, Oscillator } from "./oscillator.js";
import type { Plan } from "./plan.js";
import { Random } from "./random.js";
import { RecordServer } from "./record-server.js";

/** Requests that were made and not answered, and who is told of each. */
interface Traffic {
  readonly pending: number;
  onCall: ((what: string) => void) | undefined;
}

export interface Connection {
  readonly backend: Backend;
  readonly traffic: Traffic;
  /** Closes the backend, unless another election of the process still uses it; `late` hears of whatever is left of it. */
  close(late: (what: string) => void): Promise<void>;
}

export interface Store {
  connect(clock: SimClock, process: SimProcess, trouble: Trouble, purpose: string): Connection;
  /** Whether the office of this token is still recorded; `undefined` if this store cannot tell. */
  holds(token: bigint): boolean | undefined;
  /** Whether the office was vacant, or its holder silent, not long ago. Only where reading itself can go wrong. */
  vacancy?(): boolean;
  /** All machines lose power at once. */
  losePower(): void;
  /** Loses its memory: at once and all of it, or, if asked for now, back to what it knows now whenever the result is called. */
  readonly memory?: StoreMemory;
  /** A deposed leader of the store answers this node's keep-alives until then. */
  depose(node: string, untilTime: number): void;
}

/** A store that can be wiped and restored. */
export interface StoreMemory {
  wipe(): void;
  /** Returns how to go back to this moment. */
  backUp(): () => void;
  /** An operator raises the store's tokens above all there were. */
  raise(): void;
  /** Whether this token's key was lost with the store's memory. */
  forgot(token: bigint): boolean;
  /** The highest token that campaigns of this process have met in this election, before the store lost its memory of it. */
  met(process: SimProcess, election: string): bigint;
  /** A new candidate, or one that was told to accept lower tokens, has met none. */
  forgive(process: SimProcess, election: string): void;
}

export interface StoreOptions {
  readonly plan: Plan;
  readonly host: StoreHost;
  readonly monitor: Monitor;
  /** The key of this token is gone. */
  readonly gone: (token: bigint) => void;
  /** Told of every record, besides those of elections, that became the newest of its key. */
  readonly wrote: (record: string) => void;
}

/** The one election all candidates stand in. */
export const ELECTION = "sim";

const ROOM = "/sim";
/** Where the etcd room keeps records. */
const RECORDS = new Keys("").record("");

const GUARANTEES: Omit<Guarantees, "expiry"> = {
  exclusion: "linearizable",
  token: "record",
  succession: "unordered",
  ttl: { minMs: 100, stepMs: 1 },
};

export function openStore(options: StoreOptions): Store {
  switch (options.plan.store) {
    case "observer":
      return observerStore(options);
    case "timed":
      return timedStore(options);
    case "queue":
      return queueStore(options);
    case "file":
      return fileStore(options);
  }
}

/** The store's own clock runs at its own rate too. */
function ownClock(plan: Plan, random: Random): Oscillator {
  return new Oscillator(drawRate(plan.rates, random), { mono: 0, boot: 0, wall: 0 });
}

/** Records besides those of elections, on the same machine. */
function recordServer({ host, wrote }: StoreOptions, oscillator: Oscillator): RecordServer<string> {
  return new RecordServer<string>({
    scheduler: host.scheduler,
    oscillator,
    firstVersion: 0n,
    watch: false,
    onWrite: (_key, _version, record) => wrote(record),
  });
}

function observerStore(options: StoreOptions): Store {
  const { plan, host, monitor } = options;
  const random = new Random(plan.seed, "store");
  const oscillator = ownClock(plan, random);
  const server = new RecordServer<string>({
    scheduler: host.scheduler,
    oscillator,
    firstVersion: BigInt(random.whole(0, 1000)),
    watch: plan.watch,
    onWrite: (_, version, record, process) => monitor.note(`store: ${version} ${record} by ${process}`),
  });
  const records = recordServer(options, oscillator);
  return {
    ...ordinary,
    holds: (token) => {
      const text = server.current(ELECTION)?.replace(FOREIGN, OURS);
      return holdsRecord(text === undefined ? undefined : decodeLease(text), server.version(ELECTION), token);
    },
    connect: (clock, process, trouble, purpose) => {
      const link = new Link(process, host, trouble, plan, purpose);
      const texts = server.connect(link);
      const leases = textLeases(plan.foreign && process.node.index === 1 ? foreign(texts) : texts);
      const guarantees: Guarantees = { ...GUARANTEES, expiry: "observer" };
      return own(
        recordBackend({ name: "sim-observer", guarantees, leases, records: records.connect(link), clock }),
        link,
      );
    },
  };
}

function timedStore(options: StoreOptions): Store {
  const { plan, host, monitor } = options;
  const random = new Random(plan.seed, "store");
  const oscillator = ownClock(plan, random);
  const server = new RecordServer<LeaseRecord>({
    scheduler: host.scheduler,
    oscillator,
    firstVersion: BigInt(random.whole(0, 1000)),
    watch: plan.watch,
    ttlOf: (record) => record.ttlMs,
    onWrite: (_, version, { holder, token, value }, process) =>
      monitor.note(`store: ${version} ${holder ?? "vacant"} ${token ?? "new"} ${value} by ${process}`),
  });
  const records = recordServer(options, oscillator);
  return {
    ...ordinary,
    holds: (token) => holdsRecord(server.current(ELECTION), server.version(ELECTION), token),
    connect: (clock, process, trouble, purpose) => {
      const link = new Link(process, host, trouble, plan, purpose);
      const guarantees: Guarantees = { ...GUARANTEES, expiry: "store" };
      const leases = server.connect(link);
      return own(
        recordBackend({ name: "sim-timed", guarantees, leases, records: records.connect(link), clock }),
        link,
      );
    },
  };
}

function queueStore({ plan, host, monitor, wrote, gone }: StoreOptions): Store {
  const random = new Random(plan.seed, "store");
  const met = new MetTokens();
  const server = new EtcdServer({
    scheduler: host.scheduler,
    oscillator: ownClock(plan, random),
    random,
    onChange: ({ type, kv }) => {
      if (kv.key.startsWith(RECORDS)) wrote(kv.value);
      else monitor.note(`store: ${type} ${kv.key} ${kv.createRevision} ${kv.value}`);
      if (type === "delete") gone(kv.createRevision);
    },
    onGrant: ({ process }, lease) => met.granted(process, lease),
    onAnswer: ({ process }, asked, answer) => met.answered(process, asked, answer),
  });
  const backends = new Map<SimProcess, Shared>();
  return {
    holds: (token) => server.has(token),
    memory: {
      wipe: () => server.restore(),
      backUp: () => {
        const backup = server.backUp();
        return () => server.restore(backup);
      },
      raise: () => server.raise(),
      forgot: (token) => server.forgot(token),
      met: (process, election) => met.highest(process, election, (token) => server.isPast(token)),
      forgive: (process, election) => met.forget(process, election),
    },
    losePower: () => server.failOver(),
    depose: (node, untilTime) => {
      server.deposedFor.set(node, untilTime);
      server.failOver();
    },
    connect: (_, process, trouble, purpose) => {
      let shared = backends.get(process);
      if (shared === undefined) {
        const clock = new SimClock(process, `etcd/${purpose}`);
        const link = new Link(process, host, trouble, plan, `etcd/${purpose}`, false);
        const layout = plan.oneKey ? "key" : "queue";
        shared = {
          users: 0,
          clock,
          link,
          backend: etcdBackend({ client: server.connect(link, clock), clock, layout }),
        };
        backends.set(process, shared);
      }
      return share(shared, () => backends.delete(process));
    },
  };
}

function fileStore({ plan, host, monitor, wrote }: StoreOptions): Store {
  const disk = new Disk(host, new Random(plan.seed, "store"));
  const writes: { readonly time: number; readonly vacant: boolean }[] = [];
  disk.onLink = (path, data, names) => {
    monitor.note(`store: link ${path}`);
    const { number, record } = decodeEnvelope(data);
    if (path.startsWith(`${ROOM}/records/`)) {
      // A number that came and went can come again; nobody takes it for the newest.
      const [newest] = parseListing(names).numbers;
      if (newest === undefined || newest === number) wrote(record);
      return;
    }
    writes.push({ time: host.scheduler.now, vacant: decodeLease(record).holder === null });
  };
  return {
    ...ordinary,
    losePower: () => disk.losePower(),
    vacancy: () => vacantLately(writes, host.scheduler.now, plan.ttlMs * plan.ttlShare),
    connect: (clock, process, trouble, purpose) => {
      const calls = new DiskCalls(process, host, trouble, plan, purpose);
      const fs = disk.connect(calls);
      // A system call cannot be called back: what is under way may end, but nothing may be written any more.
      const backend = fileBackend({ fs, clock, directory: ROOM, deadProcessRule: false });
      return { ...own(backend, calls), close: (late) => closeFiles(backend, calls, late) };
    },
  };
}

/** A backend that serves one election alone. */
export function own(backend: Backend, traffic: Traffic): Connection {
  return { backend, traffic, close: (late) => closeBackend(backend, traffic, late) };
}

async function closeBackend(backend: Backend, traffic: Traffic, late: (what: string) => void): Promise<void> {
  await backend[Symbol.asyncDispose]();
  await Promise.resolve();
  if (traffic.pending > 0) late(`${traffic.pending} requests are still waited for`);
  traffic.onCall = (what) => late(`the store was asked: ${what}`);
}

async function closeFiles(backend: Backend, traffic: Traffic, late: (what: string) => void): Promise<void> {
  await backend[Symbol.asyncDispose]();
  traffic.onCall = (what) => void (what === "link" && late("a record was written"));
}

/** One backend for all elections of a process, with a clock of its own. */
interface Shared {
  users: number;
  readonly clock: SimClock;
  readonly link: Link;
  readonly backend: Backend;
}

function share(shared: Shared, forget: () => void): Connection {
  const { backend, clock, link } = shared;
  shared.users++;
  const close = async (late: (what: string) => void): Promise<void> => {
    if (--shared.users > 0) return;
    forget();
    await closeBackend(backend, link, late);
    if (clock.pending > 0) late(`${clock.pending} timers of the backend are still set`);
    clock.retired = late;
  };
  return { backend, traffic: link, close };
}

export const ordinary: Omit<Store, "connect"> = {
  losePower: () => {},
  depose: () => {},
  holds: () => undefined,
};

/** In the last two ttls, was there a vacant record, or a silence long enough to be taken for one by someone? */
function vacantLately(
  writes: readonly { readonly time: number; readonly vacant: boolean }[],
  now: number,
  ttlMs: number,
): boolean {
  let later = now;
  for (let i = writes.length - 1; i >= 0; i--) {
    const { time, vacant } = writes[i]!;
    if (vacant || later - time > ttlMs / 2) return true;
    if (time < now - 2 * ttlMs) return false;
    later = time;
  }
  return true;
}

/** Only the very record that a term stands on counts. */
function holdsRecord(record: LeaseRecord | undefined, version: bigint | undefined, token: bigint): boolean {
  return record !== undefined && record.holder !== null && (record.token ?? version) === token;
}

/** A node of another release, whose records the others cannot read. */
function foreign(store: RecordStore): RecordStore {
  const native = (entry: Entry | null): Entry | null =>
    entry === null ? null : { ...entry, record: entry.record.replace(FOREIGN, OURS) };
  const { watch } = store;
  return {
    read: async (key, options) => native(await store.read(key, options)),
    write: async (key, expected, record, options) =>
      native(await store.write(key, expected, record.replace(OURS, FOREIGN), options)),
    ...(watch && { watch: (key, wake, options) => watch.call(store, key, wake, options) }),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

const OURS = '{"v":1,';
const FOREIGN = '{"v":2,';
