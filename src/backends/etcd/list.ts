/** Lists of names, page by page: elections that have a candidate (one without leaves no key), and records. */
import type { Listing } from "../../seam/backend.js";
import { listing, MOST_LISTED } from "../../kit/listing.js";
import type { CallLimits, EtcdClient, KeyValue } from "./client.js";
import type { Keys } from "./keys.js";

/** One answer of etcd is at most a few hundred kilobytes, and other requests get through in between. */
const PAGE = 1_000;

/** `nameOf`: the election that a key belongs to, by its layout; `undefined` if it is none. */
export async function listElections(
  client: EtcdClient,
  keys: Keys,
  nameOf: (key: string) => string | undefined,
  limits: CallLimits,
): Promise<Listing> {
  return listKeys(client, keys.all(), ({ key, lease }) => (lease === 0n ? undefined : nameOf(key)), limits);
}

/** `nameOf`: what a key is of; `undefined` if it is nothing that is looked for. */
export async function listKeys(
  client: EtcdClient,
  range: { readonly key: string; readonly rangeEnd: string },
  nameOf: (kv: KeyValue) => string | undefined,
  limits: CallLimits,
): Promise<Listing> {
  const names = new Set<string>();
  const { rangeEnd, ...first } = range;
  let { key } = first;
  for (let looked = 0; looked < MOST_LISTED; looked += PAGE) {
    const page = { kind: "range", key, rangeEnd, limit: PAGE, keysOnly: true } as const;
    const answer = await client.transaction({ when: [], then: [page], otherwise: [] }, limits);
    const found = answer.results[0]?.kvs ?? [];
    for (const kv of found) {
      const name = nameOf(kv);
      if (name !== undefined) names.add(name);
    }
    const last = found.at(-1);
    if (last === undefined || found.length < PAGE) return listing(names, true);
    key = `${last.key}\0`; // the next possible key
  }
  return listing(names, false);
}
