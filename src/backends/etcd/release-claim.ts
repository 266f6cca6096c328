/** Giving a leadership back in the name of another process: its key is found by the token, and deleted if it is still that one. */
import type { Claim } from "../../seam/backend.js";
import type { CallLimits, EtcdClient, KeyValue } from "./client.js";

export interface ClaimedElection {
  readonly client: EtcdClient;
  /** The keys of the election. */
  readonly range: { readonly key: string; readonly rangeEnd?: string };
  /** Who wrote this key. */
  identify(kv: KeyValue, limits: CallLimits): Promise<string>;
}

export async function releaseClaim(
  { client, range, identify }: ClaimedElection,
  { candidate, token }: Claim,
  limits: CallLimits,
): Promise<"released" | "not-held"> {
  const newestUpTo = { sort: "newest-first", limit: 1, maxCreateRevision: token } as const;
  const found = await client.transaction(
    { when: [], then: [{ kind: "range", ...range, ...newestUpTo }], otherwise: [] },
    limits,
  );
  const kv = found.results[0]?.kvs[0];
  // A token is the create revision of one key, and of no other in the cluster.
  if (kv?.createRevision !== token || (await identify(kv, limits)) !== candidate) return "not-held";
  const { succeeded } = await client.transaction(
    {
      when: [{ target: "create", key: kv.key, value: token }],
      then: [{ kind: "delete", key: kv.key }],
      otherwise: [],
    },
    limits,
  );
  return succeeded ? "released" : "not-held";
}
