/** What every simulated store is made of, and what is asked of it. */
import type { Backend } from "../../seam/backend.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import { EVICTED_HOLDER } from "../../record/lease.js";
import type { LeaseRecord } from "../../record/lease.js";
import type { SimClock } from "./clock.js";
import type { Monitor } from "./monitor.js";
import type { StoreHost, Trouble } from "./network.js";
import type { SimProcess } from "./node.js";
import { drawRate, Oscillator } from "./oscillator.js";
import type { Plan } from "./plan.js";
import type { Random } from "./random.js";
import type { Account, Forgetful, Sighting } from "./record-memory.js";
import type { RecordServer } from "./record-server.js";

/** Requests that were made and not answered, and who is told of each. */
export interface Traffic {
  readonly pending: number;
  onCall: ((what: string) => void) | undefined;
}

export interface Connection {
  readonly backend: Backend;
  readonly traffic: Traffic;
  /** What was met over this connection, where the store keeps account of it. */
  readonly account?: Account;
  /** Closes the backend, unless another election of the process still uses it; `late` hears of whatever is left of it. */
  close(late: (what: string) => void): Promise<void>;
}

export interface Store {
  connect(clock: SimClock, process: SimProcess, trouble: Trouble, purpose: string): Connection;
  /** Whether leadership of this token is still recorded; `undefined` if this store cannot tell. */
  holds(token: bigint, election: string): boolean | undefined;
  /** Whether leadership was vacant, or its holder silent, not long ago. Only where reading itself can go wrong. */
  vacancy?(): boolean;
  /** All machines lose power at once. */
  losePower(): void;
  /** Loses its memory: at once and all of it, or, if asked for now, back to what it knows now whenever the result is called. */
  readonly memory?: StoreMemory;
  /** Whether this token was ever granted, or is the version of a record that nobody can read. */
  granted?(token: bigint): boolean;
  /** Whether there is a record, and whoever reads it gets the newest one. */
  vouches?(): boolean;
  /** Somebody who may write to the store writes a record with a token that was never granted. */
  forge?(ttlMs: number): void;
  /** Somebody sets the clock by which the store times leases. */
  step?(byMs: number): void;
  /** A deposed leader of the store answers this node's keep-alives until then. */
  depose(node: string, untilTime: number): void;
  /** This node leaves the cluster that the store is, and its sessions end at once. */
  leave?(node: string): void;
}

/** A store that can be wiped and restored. */
export interface StoreMemory {
  wipe(): void;
  /** Returns how to go back to this moment. */
  backUp(): () => void;
  /** An operator raises the store's tokens above all there were. */
  raise(): void;
  /** Whether this token's key was lost with the store's memory. */
  forgot(token: bigint, election: string): boolean;
  /**
   * The highest token of other candidates that campaigns of this process have met
   * in this election, before the store lost its memory of it.
   */
  met(process: SimProcess, election: string, candidate: string | undefined): bigint;
  /** A new candidate, or one that was told to accept lower tokens, has met none. */
  forgive(process: SimProcess, election: string): void;
}

export interface StoreOptions {
  readonly plan: Plan;
  readonly host: StoreHost;
  readonly monitor: Monitor;
  /** The key of this token is gone: of all elections, or of those it concerns. */
  readonly gone: (token: bigint, concerns?: (election: string) => boolean) => void;
  /** Told of every record, besides those of elections, that became the newest of its key. */
  readonly wrote: (record: string) => void;
}

/** The one election all candidates stand in. */
export const ELECTION = "sim";

export const ordinary: Omit<Store, "connect"> = {
  losePower: () => {},
  depose: () => {},
  holds: () => undefined,
};

/** The store's own clock runs at its own rate too. */
export function ownClock(plan: Plan, random: Random): Oscillator {
  return new Oscillator(drawRate(plan.rates, random), { mono: 0, boot: 0, wall: 0 });
}

/** A backend that serves one election alone. */
export function own(backend: Backend, traffic: Traffic, account?: Account): Connection {
  return {
    backend,
    traffic,
    ...(account && { account }),
    close: (late) => closeBackend(backend, traffic, late),
  };
}

export async function closeBackend(
  backend: Backend,
  traffic: Traffic,
  late: (what: string) => void,
): Promise<void> {
  await backend[Symbol.asyncDispose]();
  await Promise.resolve();
  if (traffic.pending > 0) late(`${traffic.pending} requests are still waited for`);
  traffic.onCall = (what) => late(`the store was asked: ${what}`);
}

/** Of a vacant record, or one whose leader was evicted, an observer is told nothing, and a forged one holds nothing. */
export function holderOf({ version, record }: Entry<LeaseRecord>): Sighting | undefined {
  const { holder, token } = record;
  if (holder === null || holder === EVICTED_HOLDER || (token ?? version) > version) return undefined;
  return { holder, token: token ?? version };
}

/** Whether a grant wrote this record: the version it gets is a token. */
export function isGrant({ holder, token }: LeaseRecord): boolean {
  return holder !== null && token === null;
}

/** The token of the record that is there, if somebody holds it: only the very record that a term stands on counts. */
export function tokenIn<R>(server: RecordServer<R>, read: (record: R) => LeaseRecord): bigint | undefined {
  const [record, version] = [server.current(ELECTION), server.version(ELECTION)];
  if (record === undefined || version === undefined) return undefined;
  return holderOf({ version, record: read(record) })?.token;
}

export function forgetful<R>(server: RecordServer<R>, read: (record: R) => LeaseRecord): Forgetful {
  return {
    wipe: () => server.restore(),
    backUp: () => {
      const backup = server.backUp();
      return () => server.restore(backup);
    },
    raise: () => server.raise(),
    token: () => tokenIn(server, read),
  };
}

/** The same store; the account is told of every record that a read brought. */
export function meeting<R>(
  store: RecordStore<R>,
  account: Account,
  read: (record: R) => LeaseRecord,
): RecordStore<R> {
  const met = ({ version, record }: Entry<R>): void => {
    const sighting = holderOf({ version, record: read(record) });
    if (sighting !== undefined) account.meet(sighting);
  };
  const { read: ask } = store;
  return {
    ...store,
    read: async (key, options) => {
      const entry = await ask.call(store, key, options);
      if (entry !== null && key === ELECTION) met(entry);
      return entry;
    },
  };
}

/** What nobody can have written who was granted leadership. */
export function forged(ttlMs: number): LeaseRecord {
  return { holder: "somebody", ttlMs, value: "", since: 1, token: NEVER_GRANTED };
}

export const NEVER_GRANTED = 99_999_999_999_999_999_999n;
