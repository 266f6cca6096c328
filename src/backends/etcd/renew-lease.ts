/**
 * One renewal of a lease: a keep-alive, and then linearizable transactions that
 * read the keys of the lease: all of them, unless nothing was written to the
 * store since they were last read. It counts only if all answers carry the same
 * raft term: in older versions of etcd, a deposed cluster leader can answer
 * keep-alives for a lease that the new leader lets expire.
 */
import type { Extension } from "../../seam/backend.js";
import { readClocks } from "../../kit/clock.js";
import type { Clock } from "../../seam/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import type { CallLimits, EtcdClient } from "./client.js";
import type { CandidateKey } from "./candidate-key.js";
import { inTurn, verifyKeys } from "./verify-keys.js";

export interface RenewLeaseOptions {
  readonly lease: bigint;
  /** Everyone on the lease, asked for after the keep-alive. */
  candidateKeys(): readonly CandidateKey[];
  /** How many renewals there were before. */
  readonly round: number;
  /** Some key that may be read, if there is no candidate key yet. */
  readonly anyKey: string;
  readonly limits: CallLimits;
  /** Refused for this key only: no renewal counts for it. */
  denied(candidateKey: CandidateKey, error: unknown): void;
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
  { lease, candidateKeys, round, anyKey, limits, denied }: RenewLeaseOptions,
): Promise<Renewal> {
  const asked = readClocks(clock);
  const { ttl, raftTerm } = await client.leaseKeepAlive(lease, limits);
  // Those that wait without a key of their own (one key for all) have something to look at too: the one they wait for.
  const looked = inTurn(candidateKeys(), round).filter(
    ({ token, predecessor }) => token !== undefined || predecessor !== undefined,
  );
  const extension = ttl > 0n ? { asked } : undefined;
  const verification = { raftTerm, extension, limits, denied };
  const { present, revision } = await verifyKeys(client, looked, anyKey, verification);
  // "No such lease" is accepted when the cluster agrees that its keys are gone.
  if (extension === undefined && present > 0)
    throw new ConclaveError("unavailable", "etcd denied the lease but still has its keys; asking again");
  // Those that have won meanwhile would be extended with the others, unread.
  const late = candidateKeys().filter(
    (candidateKey) => candidateKey.state === "held" && candidateKey.extension !== extension,
  );
  if (extension !== undefined && late.length > 0) await verifyKeys(client, late, anyKey, verification);
  return { extension, revision };
}
