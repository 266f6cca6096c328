/** Consul: sessions that hold locks, with the real backend before a modelled server. */
import { consulBackend } from "../../backends/consul/index.js";
import { SimClock } from "./clock.js";
import { ConsulServer } from "./consul-server.js";
import { Link } from "./network.js";
import type { SimProcess } from "./node.js";
import { Random } from "./random.js";
import { type Shared, share } from "./shared-backend.js";
import { ownClock } from "./store-parts.js";
import type { Store, StoreOptions } from "./store-parts.js";

const PREFIX = "p";
const LOCK = /^p\/(.*)\/\.lock$/;

export function lockStore({ plan, host, monitor, wrote, gone }: StoreOptions): Store {
  const random = new Random(plan.seed, "store");
  /** By process and election: the versions that campaigns have read. */
  const met = new WeakMap<object, Map<string, bigint[]>>();
  const server = new ConsulServer({
    scheduler: host.scheduler,
    oscillator: ownClock(plan, random),
    random,
    onChange: ({ key, value, modifyIndex, session }) => {
      if (LOCK.test(key)) monitor.note(`store: ${key} ${modifyIndex} ${session ?? "free"}`);
      else wrote((JSON.parse(value) as { record: string }).record);
    },
    onGone: gone,
    onLock: ({ process }, key, index) => {
      const election = LOCK.exec(key)?.[1] ?? "";
      const account = met.get(process) ?? new Map<string, bigint[]>();
      met.set(process, account.set(election, [...(account.get(election) ?? []), index]));
    },
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
      met: (process, election) =>
        (met.get(process)?.get(election) ?? [])
          .filter((index) => server.isPast(index))
          .reduce((highest, index) => (index > highest ? index : highest), -1n),
      forgive: (process, election) => void met.get(process)?.delete(election),
    },
    losePower: () => server.failOver(),
    depose: (node, untilTime) => {
      server.deposedFor.set(node, untilTime);
      server.failOver();
    },
    leave: (node) => server.leave(node),
    connect: (_, process, trouble, purpose) => {
      let shared = backends.get(process);
      if (shared === undefined) {
        const clock = new SimClock(process, `consul/${purpose}`);
        const link = new Link(process, host, trouble, plan, `consul/${purpose}`, false);
        const client = server.connect(link, clock);
        const backend = consulBackend({ client, clock, prefix: PREFIX, minTtlMs: 1_000 });
        shared = { users: 0, clock, link, backend };
        backends.set(process, shared);
      }
      return share(shared, () => backends.delete(process));
    },
  };
}
