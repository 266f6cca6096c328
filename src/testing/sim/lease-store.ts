/** Leases of an API server, written by the rules of client-go. */
import { KubernetesBackend } from "../../backends/kubernetes/backend.js";
import { decodeLease } from "../../record/codec.js";
import { holderToken, KubeApi, leaseOf, recordIn, withToken } from "./kube-server.js";
import { Link } from "./network.js";
import { Random } from "./random.js";
import { RecordMemory } from "./record-memory.js";
import { RecordServer } from "./record-server.js";
import { ELECTION, forgetful, NEVER_GRANTED, ordinary, own, ownClock } from "./store-parts.js";
import type { Store, StoreOptions } from "./store-parts.js";

export function leaseStore({ plan, host, monitor, wrote }: StoreOptions): Store {
  const random = new Random(plan.seed, "store");
  const server = new RecordServer<string>({
    scheduler: host.scheduler,
    oscillator: ownClock(plan, random),
    firstVersion: BigInt(random.whole(0, 1000)),
    watch: false,
    lags: false,
    onWrite: (_, version, text, process) => {
      const record = recordIn(text);
      if (record !== undefined) wrote(record);
      else monitor.note(`store: ${version} ${text} by ${process}`);
    },
  });
  const token = (): bigint | undefined => {
    const [record, version] = [server.current(ELECTION), server.version(ELECTION)];
    return record === undefined ? undefined : holderToken(leaseOf({ record, version: version ?? 0n }));
  };
  const memory = new RecordMemory({ ...forgetful(server, () => decodeLease("")), token });
  let objects = 0;
  return {
    ...ordinary,
    memory,
    highest: () => server.highest,
    vouches: () => server.current(ELECTION) !== undefined,
    forge: () => {
      monitor.damaged = true;
      server.plant(ELECTION, (text) => text && withToken(text, NEVER_GRANTED));
    },
    holds: (held) => token() === held,
    connect: (clock, process, trouble, purpose) => {
      const link = new Link(process, host, trouble, plan, purpose);
      const client = new KubeApi(server.connect(link), () => `uid-${++objects}`);
      return own(new KubernetesBackend({ client, clock, namespace: "sim", label: undefined }), link);
    },
  };
}
