/** Leases of an API server, written by the rules of client-go. */
import { KubernetesBackend } from "../../backends/kubernetes/backend.js";
import { decodeLease } from "../../record/codec.js";
import { termKey } from "../../backends/kubernetes/lease.js";
import { publishedTerm, recordOf } from "../../backends/kubernetes/lease.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import { KubeApi, leaseOf, recordIn, withToken } from "./kube-server.js";
import { Link } from "./network.js";
import { Random } from "./random.js";
import { RecordMemory } from "./record-memory.js";
import type { Account } from "./record-memory.js";
import { RecordServer } from "./record-server.js";
import {
  ELECTION,
  forgetful,
  holderOf,
  isGrant,
  NEVER_GRANTED,
  ordinary,
  own,
  ownClock,
} from "./store-parts.js";
import type { Store, StoreOptions } from "./store-parts.js";

export function leaseStore({ plan, host, monitor, wrote }: StoreOptions): Store {
  const random = new Random(plan.seed, "store");
  const grants = new Set<bigint>();
  const server = new RecordServer<string>({
    scheduler: host.scheduler,
    oscillator: ownClock(plan, random),
    firstVersion: BigInt(random.whole(0, 1000)),
    watch: false,
    lags: false,
    onWrite: (_, version, text, process) => {
      const record = recordIn(text);
      if (record !== undefined) return wrote(record);
      monitor.note(`store: ${version} ${text} by ${process}`);
      const lease = leaseOf({ version, record: text });
      if (publishedTerm(lease) !== undefined && isGrant(recordOf(lease, null))) grants.add(version);
    },
  });
  const token = (): bigint | undefined => {
    const [record, version] = [server.current(ELECTION), server.version(ELECTION)];
    return record === undefined ? undefined : sighted({ record, version: version ?? 0n })?.token;
  };
  const memory = new RecordMemory({ ...forgetful(server, () => decodeLease("")), token });
  let objects = 0;
  return {
    ...ordinary,
    memory,
    granted: (number) => grants.has(number),
    vouches: () => server.current(ELECTION) !== undefined,
    forge: () => void server.plant(ELECTION, (text) => text && withToken(text, NEVER_GRANTED)),
    holds: (held) => token() === held,
    connect: (clock, process, trouble, purpose) => {
      const link = new Link(process, host, trouble, plan, purpose);
      const account = memory.connect(process);
      const client = new KubeApi(meetingTerms(server.connect(link), account), () => `uid-${++objects}`);
      return own(new KubernetesBackend({ client, clock, namespace: "sim", label: undefined }), link, account);
    },
  };
}

/** Who holds the Lease of this text. */
function sighted(entry: Entry): ReturnType<typeof holderOf> {
  const lease = leaseOf(entry);
  return holderOf({ version: lease.version, record: recordOf(lease, null) });
}

/**
 * The same objects; the account is told of every term that an answer brought, but
 * not that a campaign has met its token: what the read before a watch brings
 * reaches no campaign.
 */
function meetingTerms(store: RecordStore, account: Account): RecordStore {
  const met = (key: string, entry: Entry | null): Entry | null => {
    if (entry === null || key !== ELECTION) return entry;
    const lease = leaseOf(entry);
    const exact = publishedTerm(lease) !== undefined;
    if (sighted(entry) !== undefined) account.meetTerm(termKey(lease), exact, lease.version);
    return entry;
  };
  return {
    ...store,
    read: async (key, options) => met(key, await store.read(key, options)),
    write: async (key, expected, record, options) =>
      met(key, await store.write(key, expected, record, options)),
  };
}
