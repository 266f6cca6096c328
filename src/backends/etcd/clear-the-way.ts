/**
 * Handing over to a named candidate that stands further back in the queue.
 * Whoever has the oldest key leads, for every program that campaigns in this
 * queue. So those ahead of the heir go to its end, and they do so while the
 * leader that hands over still has its key: nobody can lead in between, and a
 * name that arrives late moves nobody.
 *
 * The leader names the heir and touches its key. The heir, which shows by this
 * that it lives, touches the keys ahead of its own. Their owners leave the queue
 * and join it again. When the heir is next, the leader removes its own key. What
 * does not happen in time is not waited for: then the next in line leads.
 */
import { isHeir } from "../../kit/heir.js";
import type { Stop } from "../../kit/stop.js";
import { limited, onAbort } from "../../kit/wait.js";
import type { Heir } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import type { CandidateKey } from "./candidate-key.js";
import type { CallLimits, EtcdClient, KeyValue, Operation } from "./client.js";
import type { Keys } from "./keys.js";

/** Ahead of an heir: a transaction takes 128 operations. */
const MOST_AHEAD = 100;
/** Times that the heir asks those ahead again because one of them left meanwhile. */
const MOST_TRIES = 3;
/** What a leader writes is much shorter. */
const LONGEST_NOTE = 4_000;

export interface Waiting {
  readonly client: EtcdClient;
  readonly keys: Keys;
  readonly candidateKey: CandidateKey;
}

/** Whom a leader names, and that it is this leader who does. Valid only while both keys exist. */
interface Note {
  /** Create revision of the leader's key. */
  readonly leader: bigint;
  readonly key: string;
  readonly createRevision: bigint;
}

/** Brings the heir to the front of those that wait. Never throws: a resignation without an heir is one all the same. */
export async function clearTheWay(
  { client, keys, candidateKey, clock }: Waiting & { readonly clock: Clock },
  heir: Heir,
  { signal, limitMs }: CallLimits,
): Promise<void> {
  const boundMs = Math.min(heir.forMs, limitMs / 2);
  const work = (stop: CallLimits["signal"]): Promise<void> =>
    bringForward({ client, keys, candidateKey }, heir.candidate, { signal: stop, limitMs: boundMs });
  await limited(clock, boundMs, signal, "handing over on etcd", work).catch(() => {});
}

async function bringForward(parts: Waiting, heir: string, limits: CallLimits): Promise<void> {
  const { client, keys, candidateKey } = parts;
  const found = await heirIn(parts, heir, limits);
  if (found === undefined || candidateKey.token === undefined) return;
  const { key, createRevision } = found.key;
  const note: Note = { leader: candidateKey.token, key, createRevision };
  if (found.next) return tell(parts, note, limits);
  const { key: queue, rangeEnd } = keys.queue(candidateKey.election);
  const left = new Changes();
  const unwatch = client.watch({ key: queue, rangeEnd, skip: "puts" }, () => left.happened());
  try {
    await left.next(limits.signal); // the watch stands: whoever leaves from now on is reported
    candidateKey.heirKey = keys.heir(candidateKey.election);
    const named = await client.transaction(
      {
        when: [
          { target: "create", key: candidateKey.key, value: note.leader },
          { target: "create", key: note.key, value: note.createRevision },
        ],
        then: [
          { kind: "put", key: candidateKey.heirKey, value: write(note), lease: candidateKey.lease },
          { kind: "touch", key: note.key },
        ],
        otherwise: [],
      },
      limits,
    );
    while (named.succeeded && (await isBehindOthers(parts, note, limits))) await left.next(limits.signal);
  } finally {
    unwatch();
  }
}

/**
 * The heir's turn comes next in any case. It is told that it was named, since it
 * may prefer others to lead: it finds the note when its turn has come, so the
 * note stays, until the leader's lease ends or somebody names another heir.
 */
async function tell({ client, keys, candidateKey }: Waiting, note: Note, limits: CallLimits): Promise<void> {
  const { key, election, lease } = candidateKey;
  const when = [created({ key, createRevision: note.leader }), created(note)];
  const put = { kind: "put", key: keys.heir(election), value: write(note), lease } as const;
  await client.transaction({ when, then: [put], otherwise: [] }, limits);
}

/** The heir's key, if only candidates that can go behind it are ahead of it; and whether none is. Nothing if nobody else waits. */
async function heirIn(
  { client, keys, candidateKey }: Waiting,
  heir: string,
  limits: CallLimits,
): Promise<{ readonly key: KeyValue; readonly next: boolean } | undefined> {
  const { election, token } = candidateKey;
  const queue = { ...keys.queue(election), sort: "oldest-first", keysOnly: true } as const;
  const all = await read(client, [{ kind: "range", ...queue, limit: MOST_AHEAD + 2 }], limits);
  const [own, ...waiting] = all[0] ?? [];
  if (own?.createRevision !== token || waiting.length < 2) return undefined;
  const identities = await read(
    client,
    waiting.map(({ lease }) => ({ kind: "range", key: keys.identity(election, lease) })),
    limits,
  );
  const at = waiting.findIndex((_, i) => isHeir(identities[i]?.[0]?.value ?? "", heir));
  // Another program's candidate stays where it is, and leads when its turn comes.
  const movable = identities.slice(0, Math.max(0, at)).every((kvs) => kvs.length > 0);
  const key = waiting[at];
  return key !== undefined && movable ? { key, next: at === 0 } : undefined;
}

/** Whether somebody stands between the leader and the heir. An heir that is gone is not waited for. */
async function isBehindOthers(
  { client, keys, candidateKey }: Waiting,
  { leader, key, createRevision }: Note,
  limits: CallLimits,
): Promise<boolean> {
  const ahead = {
    sort: "newest-first",
    limit: 1,
    maxCreateRevision: createRevision - 1n,
    keysOnly: true,
  } as const;
  const [own, before] = await read(
    client,
    [
      { kind: "range", key, keysOnly: true },
      { kind: "range", ...keys.queue(candidateKey.election), ...ahead },
    ],
    limits,
  );
  return own?.[0]?.createRevision === createRevision && before?.[0]?.createRevision !== leader;
}

/**
 * Called by a candidate whose key was touched. The heir asks those ahead of it to
 * give way; another candidate that is ahead of the heir leaves the queue
 * (`"left"`), to join it again. Everything is guarded by the key of the leader
 * that asked: what comes late does nothing.
 */
export async function heed(waiting: Waiting, limits: CallLimits): Promise<"left" | "stays"> {
  for (let attempt = 1; attempt <= MOST_TRIES; attempt++) {
    const outcome = await tryToHeed(waiting, limits);
    if (outcome !== "changed") return outcome;
  }
  return "stays";
}

async function tryToHeed(
  { client, keys, candidateKey }: Waiting,
  limits: CallLimits,
): Promise<"left" | "stays" | "changed"> {
  const { election, key, identityKey, token } = candidateKey;
  if (token === undefined || identityKey === undefined) return "stays";
  const ahead = { sort: "newest-first", maxCreateRevision: token - 1n, keysOnly: true } as const;
  const queue = keys.queue(election);
  const [notes, before] = await read(
    client,
    [
      { kind: "range", key: keys.heir(election) },
      { kind: "range", ...queue, ...ahead, limit: MOST_AHEAD + 1 },
    ],
    limits,
  );
  const note = noteIn(notes?.[0], queue.key);
  const leader = before?.at(-1);
  if (note === undefined || leader === undefined || leader.createRevision !== note.leader) return "stays";
  const guards = [leader, note].map((each) => created(each));
  if (note.key === key && note.createRevision === token) {
    const known = candidateKey.heirOf?.has(note.leader) === true ? candidateKey.heirOf : [];
    // The last that we see of them may be any of these: the leader may go before we look again.
    candidateKey.heirOf = new Set([...known, ...(before ?? []).map(({ createRevision }) => createRevision)]);
    const others = (before ?? []).slice(0, -1);
    if (others.length === 0) return "stays";
    const touches = others.map((other): Operation => ({ kind: "touch", key: other.key }));
    const when = [...guards, ...others.map((other) => created(other))];
    const { succeeded } = await client.transaction({ when, then: touches, otherwise: [] }, limits);
    return succeeded ? "stays" : "changed";
  }
  if (note.createRevision < token) return "stays"; // it is ahead of us already
  const gone = [key, identityKey].map((each): Operation => ({ kind: "delete", key: each }));
  const when = [...guards, created({ key, createRevision: token })];
  const { succeeded } = await client.transaction({ when, then: gone, otherwise: [] }, limits);
  return succeeded ? "left" : "stays";
}

function created({ key, createRevision }: Pick<KeyValue, "key" | "createRevision">) {
  return { target: "create", key, value: createRevision } as const;
}

async function read(
  client: EtcdClient,
  then: readonly Operation[],
  limits: CallLimits,
): Promise<readonly (readonly KeyValue[])[]> {
  const { results } = await client.transaction({ when: [], then, otherwise: [] }, limits);
  return results.map(({ kvs }) => kvs);
}

function write({ leader, key, createRevision }: Note): string {
  return `${leader} ${createRevision} ${key}`;
}

const NOTE = /^(\d{1,20}) (\d{1,20}) (.+)$/s;

/** What the key says, if a leader wrote it: two revisions, and a key of this queue. */
export function noteIn(kv: KeyValue | undefined, queue: string): Note | undefined {
  if (kv === undefined || kv.value.length > LONGEST_NOTE) return undefined;
  const [, leader, createRevision, key] = NOTE.exec(kv.value) ?? [];
  if (leader === undefined || createRevision === undefined || !key?.startsWith(queue)) return undefined;
  return { leader: BigInt(leader), key, createRevision: BigInt(createRevision) };
}

/** Tells when something has happened since it was last asked. */
class Changes {
  #happened = false;
  #wake: (() => void) | undefined;

  happened(): void {
    this.#happened = true;
    this.#wake?.();
  }

  next(stop: Stop): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        this.#wake = undefined;
        this.#happened = false;
        unlink();
        if (stop.aborted) reject(stop.reason);
        else resolve();
      };
      let unlink = (): void => {};
      if (this.#happened) return done();
      this.#wake = done;
      unlink = onAbort(stop, done);
    });
  }
}
