/** The stores that candidates stand before, each with its way of being reached and of going wrong. */
import { etcdBackend } from "../../backends/etcd/index.js";
import { Keys } from "../../backends/etcd/keys.js";
import { zookeeperBackend } from "../../backends/zookeeper/index.js";
import { Paths } from "../../backends/zookeeper/paths.js";
import type { Guarantees } from "../../seam/backend.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import { recordBackend } from "../../record/backend.js";
import { decodeLease, encodeLease, textLeases } from "../../record/codec.js";
import type { LeaseRecord } from "../../record/lease.js";
import { SimClock } from "./clock.js";
import { EtcdServer, isKeyOf } from "./etcd-server.js";
import { fileStore } from "./file-store.js";
import { leaseStore } from "./lease-store.js";
import { MetTokens } from "./met-tokens.js";
import { Link } from "./network.js";
import type { SimProcess } from "./node.js";
import type { Oscillator } from "./oscillator.js";
import { Random } from "./random.js";
import { RecordMemory } from "./record-memory.js";
import { peersStore } from "./peers-store.js";
import { RecordServer } from "./record-server.js";
import { lockStore } from "./lock-store.js";
import { type Shared, share } from "./shared-backend.js";
import { simZooKeeper } from "./zookeeper-client.js";
import { SIM_TICK_MS, SimZooKeeper } from "./zookeeper-server.js";
import {
  ELECTION,
  forged,
  forgetful,
  isGrant,
  meeting,
  ordinary,
  own,
  ownClock,
  tokenIn,
} from "./store-parts.js";
import type { Store, StoreOptions } from "./store-parts.js";

/** Where the ZooKeeper backend keeps records. */
const NODE_RECORDS = new Paths("").record("");
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
      return options.plan.lease === true ? leaseStore(options) : observerStore(options);
    case "timed":
      return timedStore(options);
    case "queue":
      return queueStore(options);
    case "locks":
      return lockStore(options);
    case "file":
      return fileStore(options);
    case "peers":
      return peersStore(options);
    case "sessions":
      return sessionStore(options);
  }
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
  const read = (text: string): LeaseRecord => decodeLease(text.replace(FOREIGN, OURS));
  const grants = new Set<bigint>();
  const server = new RecordServer<string>({
    scheduler: host.scheduler,
    oscillator,
    firstVersion: BigInt(random.whole(0, 1000)),
    watch: plan.watch,
    pushes: plan.pushes ?? false,
    vouches: plan.vouches ?? false,
    onWrite: (_, version, record, process) => {
      monitor.note(`store: ${version} ${record} by ${process}`);
      if (isGrant(read(record))) grants.add(version);
    },
  });
  const records = recordServer(options, oscillator);
  const memory = new RecordMemory(forgetful(server, read));
  return {
    ...ordinary,
    memory,
    // What nobody can read is shown with its version.
    granted: (token) => plan.foreign || grants.has(token),
    forge: (ttlMs) => grants.add(server.plant(ELECTION, () => encodeLease(forged(ttlMs))) ?? 0n),
    holds: (token) => tokenIn(server, read) === token,
    connect: (clock, process, trouble, purpose) => {
      const link = new Link(process, host, trouble, plan, purpose);
      const account = memory.connect(process);
      const texts = meeting(server.connect(link), account, read);
      const leases = textLeases(plan.foreign && process.node.index === 1 ? foreign(texts) : texts);
      const guarantees: Guarantees = { ...GUARANTEES, expiry: "observer" };
      return own(
        recordBackend({ name: "sim-observer", guarantees, leases, records: records.connect(link), clock }),
        link,
        account,
      );
    },
  };
}

function timedStore(options: StoreOptions): Store {
  const { plan, host, monitor } = options;
  const random = new Random(plan.seed, "store");
  const oscillator = ownClock(plan, random);
  const grants = new Set<bigint>();
  const server = new RecordServer<LeaseRecord>({
    scheduler: host.scheduler,
    oscillator,
    firstVersion: BigInt(random.whole(0, 1000)),
    watch: plan.watch,
    pushes: plan.pushes ?? false,
    vouches: plan.vouches ?? false,
    ttlOf: (record) => record.ttlMs,
    onWrite: (_, version, record, process) => {
      const { holder, token, value } = record;
      monitor.note(`store: ${version} ${holder ?? "vacant"} ${token ?? "new"} ${value} by ${process}`);
      if (isGrant(record)) grants.add(version);
    },
  });
  const records = recordServer(options, oscillator);
  const read = (record: LeaseRecord): LeaseRecord => record;
  const memory = new RecordMemory(forgetful(server, read));
  return {
    ...ordinary,
    memory,
    granted: (token) => grants.has(token),
    forge: (ttlMs) => grants.add(server.plant(ELECTION, () => forged(ttlMs)) ?? 0n),
    step: (byMs) => server.step(byMs),
    holds: (token) => tokenIn(server, read) === token,
    connect: (clock, process, trouble, purpose) => {
      const link = new Link(process, host, trouble, plan, purpose);
      const guarantees: Guarantees = { ...GUARANTEES, expiry: "store" };
      const account = memory.connect(process);
      const leases = meeting(server.connect(link), account, read);
      return own(
        recordBackend({
          ...{ name: "sim-timed", guarantees, leases, records: records.connect(link), clock },
          uniqueVersions: true,
        }),
        link,
        account,
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
      if (type === "delete") gone(kv.createRevision, (election) => isKeyOf(kv.key, election));
    },
    onGrant: ({ process }, lease) => met.granted(process, lease),
    onAnswer: ({ process }, asked, answer) => met.answered(process, asked, answer),
  });
  const backends = new Map<SimProcess, Shared>();
  return {
    holds: (token, election) => server.has(token, election),
    memory: {
      wipe: () => server.restore(),
      backUp: () => {
        const backup = server.backUp();
        return () => server.restore(backup);
      },
      raise: () => server.raise(),
      forgot: (token, election) => server.forgot(token, election),
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

/** ZooKeeper: one session for all elections of a process, kept through a follower that may be cut off. */
function sessionStore({ plan, host, monitor, wrote, gone }: StoreOptions): Store {
  const random = new Random(plan.seed, "store");
  const server = new SimZooKeeper({
    scheduler: host.scheduler,
    oscillator: ownClock(plan, random),
    random,
    onChange: (kind, path, { data, czxid }) => {
      if (path.startsWith(NODE_RECORDS) && kind === "put") wrote(data);
      else monitor.note(`store: ${kind} ${path} ${czxid} ${data}`);
      if (kind === "delete") gone(czxid);
    },
  });
  const backends = new Map<SimProcess, Shared>();
  return {
    ...ordinary,
    holds: (token) => server.has(token),
    losePower: () => server.failOver(),
    depose: (node, untilTime) => server.cutOff(node, untilTime),
    connect: (_, process, trouble, purpose) => {
      let shared = backends.get(process);
      if (shared === undefined) {
        const clock = new SimClock(process, `zookeeper/${purpose}`);
        const link = new Link(process, host, trouble, plan, `zookeeper/${purpose}`, false);
        const client = simZooKeeper(server, link, clock);
        const backend = zookeeperBackend({ client, clock, tickMs: SIM_TICK_MS, warn: () => {} });
        shared = { users: 0, clock, link, backend };
        backends.set(process, shared);
      }
      return share(shared, () => backends.delete(process));
    },
  };
}

/** A node of another release, whose records the others cannot read. */
function foreign(store: RecordStore): RecordStore {
  const translated = (entry: Entry): Entry => ({ ...entry, record: entry.record.replace(FOREIGN, OURS) });
  const native = (entry: Entry | null): Entry | null => entry && translated(entry);
  const { watch } = store;
  return {
    read: async (key, options) => native(await store.read(key, options)),
    write: async (key, expected, record, options) =>
      native(await store.write(key, expected, record.replace(OURS, FOREIGN), options)),
    ...(watch && {
      watch: (key, wake, options) =>
        watch.call(store, key, (entry) => wake(entry && translated(entry)), options),
    }),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}

const OURS = '{"v":1,';
const FOREIGN = '{"v":2,';
