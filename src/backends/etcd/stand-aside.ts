/**
 * Priority in a queue: a candidate whose turn has come, and that prefers others to
 * lead, goes to the end of the queue, once at each vacancy, and not if nobody
 * stands behind it, or if the leader that has gone asked for it by name.
 *
 * All who do that at one vacancy leave a chain: each writes which vacancy it was
 * and which key it gave up. Whoever's turn comes because that very key is gone
 * knows that nobody has led since; so if all of them prefer others, the first of
 * them leads in the second round.
 */
import { noteIn, type Waiting } from "./clear-the-way.js";
import type { CallLimits, KeyValue } from "./client.js";

/** What a candidate remembers of the vacancies at which it stood aside. */
export interface Stance {
  /** The last one, named by the token of the first key that was given up. */
  vacancy: bigint | undefined;
}

const CHAIN = /^(\d{1,20}) (\d{1,20})$/;

/**
 * Called by a candidate that is first in line; `predecessor`: the key that was ahead of it.
 * `"left"`: its key is gone, and it has to join the queue again. `"changed"`: it has to look again.
 */
export async function standAside(
  { client, keys, candidateKey }: Waiting,
  predecessor: Pick<KeyValue, "createRevision">,
  stance: Stance,
  limits: CallLimits,
): Promise<"left" | "leads" | "changed"> {
  const { election, key, identityKey, token, lease } = candidateKey;
  if (token === undefined || identityKey === undefined) return "leads";
  if (candidateKey.heirOf?.has(predecessor.createRevision) === true) return "leads";
  const turn = keys.turn(election);
  const queue = { ...keys.queue(election), sort: "oldest-first", limit: 2, keysOnly: true } as const;
  const { results } = await client.transaction(
    {
      when: [],
      then: [
        { kind: "range", key: turn },
        { kind: "range", ...queue },
        { kind: "range", key: keys.heir(election) },
      ],
      otherwise: [],
    },
    limits,
  );
  const chain = results[0]?.kvs[0];
  const [own, next] = results[1]?.kvs ?? [];
  if (own?.createRevision !== token) return "changed";
  if (next === undefined) return "leads";
  const note = noteIn(results[2]?.kvs[0], keys.queue(election).key);
  if (note?.leader === predecessor.createRevision && note.createRevision === token) return "leads";
  const [, vacancy, given] = CHAIN.exec(chain?.value ?? "") ?? [];
  const goesOn = given !== undefined && BigInt(given) === predecessor.createRevision;
  const present = goesOn && vacancy !== undefined ? BigInt(vacancy) : token;
  if (present === stance.vacancy) return "leads";
  const { succeeded } = await client.transaction(
    {
      when: [
        { target: "create", key, value: token },
        { target: "create", key: next.key, value: next.createRevision },
        { target: "mod", key: turn, value: chain?.modRevision ?? 0n },
      ],
      then: [
        { kind: "delete", key },
        { kind: "delete", key: identityKey },
        { kind: "put", key: turn, value: `${present} ${token}`, lease },
      ],
      otherwise: [],
    },
    limits,
  );
  if (!succeeded) return "changed";
  stance.vacancy = present;
  return "left";
}
