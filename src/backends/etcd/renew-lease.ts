/**
 * One renewal of a lease: a keep-alive, and then linearizable transactions that
 * read all keys of the lease, 120 in each. It counts only if both answers carry
 * the same raft term: a deposed cluster leader of older servers can answer
 * keep-alives for a lease that the new one lets expire.
 */
import type { Extension } from "../../seam/backend.js";
import { readClocks } from "../../kit/clock.js";
import type { Clock } from "../../seam/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import type { CallLimits, EtcdClient } from "./client.js";
import type { Seat } from "./seat.js";
import { verifyKeys } from "./verify-keys.js";

export interface RenewLeaseOptions {
  readonly lease: bigint;
  /** Everyone on the lease, asked for after the keep-alive. */
  seats(): readonly Seat[];
  /** Some key that may be read, if there is no seat yet. */
  readonly anyKey: string;
  readonly limits: CallLimits;
  /** Refused for this seat alone: no renewal counts for it. */
  denied(seat: Seat, error: unknown): void;
}

export interface Renewal {
  /** `undefined`: the lease is gone, and so are its keys. */
  readonly extension: Extension | undefined;
  /** The cluster's revision, as low as any answer had it. */
  readonly revision: bigint;
}

export async function renewLease(
  client: EtcdClient,
  clock: Clock,
  { lease, seats, anyKey, limits, denied }: RenewLeaseOptions,
): Promise<Renewal> {
  const asked = readClocks(clock);
  const { ttl, raftTerm } = await client.leaseKeepAlive(lease, limits);
  // Those that wait without a key of their own (one key for all) have something to look at too: the one they wait for.
  const looked = seats().filter(({ token, predecessor }) => token !== undefined || predecessor !== undefined);
  const extension = ttl > 0n ? { asked } : undefined;
  const { present, revision } = await verifyKeys(client, looked, anyKey, {
    ...{ raftTerm, extension, limits, denied },
  });
  // "No such lease" is believed when the cluster agrees that its keys are gone.
  if (extension === undefined && present > 0)
    throw new ConclaveError("unavailable", "etcd denied the lease but still has its keys; asking again");
  return { extension, revision };
}
