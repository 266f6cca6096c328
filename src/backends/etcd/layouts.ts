/**
 * Two ways to stand for office. Each decides by a transaction, and only by the
 * answer to the last one it sent: nothing seen before a wait counts after it.
 */
import { ConclaveError } from "../../kit/errors.js";
import { untilAborted } from "../../kit/wait.js";
import type { CallLimits, EtcdClient, KeyValue, Transaction } from "./client.js";
import { candidateId, hex, type Keys } from "./keys.js";
import { entry, removal, type Seat } from "./seat.js";
import type { SharedLease } from "./shared-lease.js";
import { Vigil } from "./vigil.js";

export interface Standing {
  readonly client: EtcdClient;
  readonly seat: Seat;
  readonly lease: SharedLease;
  readonly value: string;
  readonly wait: boolean;
  readonly limits: CallLimits;
}

export interface Layout {
  readonly succession: "fifo" | "unordered";
  seatKey(election: string, leaseHex: string): string;
  /** In office (`true`), or, without waiting, not (`false`). */
  stand(standing: Standing): Promise<boolean>;
  /** Where to look for the leader. */
  leaderRange(election: string): { readonly key: string; readonly rangeEnd?: string };
  /** The election that a key belongs to; `undefined` if it is no candidate's. */
  electionOf(key: string): string | undefined;
  /** How the leader is called whose key this is. */
  leaderId(election: string, kv: KeyValue): string;
}

/** `<name>/<hex lease>`, lowest create revision leads: Go's `concurrency.Election`, `etcdctl elect`, `etcdctl lock`. */
export class QueueLayout implements Layout {
  readonly succession = "fifo";
  readonly #keys: Keys;

  constructor(keys: Keys) {
    this.#keys = keys;
  }

  seatKey(election: string, leaseHex: string): string {
    return this.#keys.queue(election).key + leaseHex;
  }

  electionOf(key: string): string | undefined {
    return this.#keys.queueOf(key);
  }

  leaderRange(election: string): { readonly key: string; readonly rangeEnd: string } {
    return this.#keys.queue(election);
  }

  leaderId(election: string, kv: KeyValue): string {
    return candidateId(this.#keys.queue(election).key, kv);
  }

  async stand(standing: Standing): Promise<boolean> {
    if (!standing.wait) return this.#tryEnter(standing);
    const vigil = new Vigil(standing.client, standing.seat, standing.limits.signal);
    try {
      await this.#await(standing, vigil);
      return true;
    } finally {
      vigil.end();
    }
  }

  async #await(standing: Standing, vigil: Vigil): Promise<void> {
    const { seat, lease, limits } = standing;
    let ahead = await this.#enter(standing);
    const queue = this.#keys.queue(seat.election);
    while (ahead !== undefined) {
      this.leaderId(seat.election, ahead);
      seat.met(ahead);
      await vigil.keep(ahead);
      if (!lease.isFresh) await untilAborted(limits.signal, lease.fresh());
      ahead = await lease.turns.ahead(seat, seat.token!, queue, limits);
    }
  }

  /** Joins the queue, and sees in the same transaction who stands before us; `undefined`: nobody, we lead. */
  async #enter({ client, seat, lease, value, limits }: Standing): Promise<KeyValue | undefined> {
    const range = this.#keys.queue(seat.election);
    for (;;) {
      await untilAborted(limits.signal, lease.fresh());
      seat.sent = true;
      const answer = await client.transaction(
        {
          when: [{ target: "create", key: seat.key, value: 0n }],
          then: [
            ...entry(seat, value),
            { kind: "range", ...range, sort: "newest-first", limit: 2, keysOnly: true },
          ],
          otherwise: [{ kind: "range", key: seat.key, keysOnly: true }],
        },
        limits,
      );
      if (answer.succeeded) {
        seat.entered(answer.revision);
        const [own, ahead] = answer.results.at(-1)?.kvs ?? [];
        if (own?.createRevision === answer.revision) return ahead;
        throw new ConclaveError("unavailable", `etcd did not show the key it wrote for "${seat.election}"`);
      }
      await removeRelic({ client, seat, limits }, answer.results[0]?.kvs[0]);
    }
  }

  /** Takes the office only if nobody stands: without waiting there is no place in the queue to disturb. */
  async #tryEnter({ client, seat, lease, value, limits }: Standing): Promise<boolean> {
    const range = this.#keys.queue(seat.election);
    await untilAborted(limits.signal, lease.fresh());
    seat.sent = true;
    const answer = await client.transaction(
      {
        when: [{ target: "create", ...range, value: 0n }],
        then: entry(seat, value),
        otherwise: [{ kind: "range", ...range, sort: "oldest-first", limit: 1, keysOnly: true }],
      },
      limits,
    );
    if (answer.succeeded) {
      seat.entered(answer.revision);
      return true;
    }
    seat.sent = false; // certainly not written
    const leader = answer.results[0]?.kvs[0];
    if (leader !== undefined) this.leaderId(seat.election, leader);
    seat.met(leader);
    if (leader?.key === seat.key) await removeRelic({ client, seat, limits }, leader);
    return false;
  }
}

/** One key, created if absent, under a lease: what hand-written programs do. Whoever is quickest follows. */
export class KeyLayout implements Layout {
  readonly succession = "unordered";
  readonly #keys: Keys;

  constructor(keys: Keys) {
    this.#keys = keys;
  }

  seatKey(election: string): string {
    return this.#keys.election(election);
  }

  electionOf(key: string): string | undefined {
    return this.#keys.nameOf(key);
  }

  leaderRange(election: string): { readonly key: string } {
    return { key: this.#keys.election(election) };
  }

  leaderId(_election: string, kv: KeyValue): string {
    return hex(kv.lease);
  }

  async stand(standing: Standing): Promise<boolean> {
    const vigil = new Vigil(standing.client, standing.seat, standing.limits.signal);
    try {
      return await this.#stand(standing, vigil);
    } finally {
      vigil.end();
    }
  }

  async #stand(standing: Standing, vigil: Vigil): Promise<boolean> {
    const { client, seat, lease, value, wait, limits } = standing;
    const take: Transaction = {
      when: [{ target: "create", key: seat.key, value: 0n }],
      then: entry(seat, value),
      otherwise: [{ kind: "range", key: seat.key, keysOnly: true }],
    };
    for (;;) {
      await untilAborted(limits.signal, lease.fresh());
      seat.sent = true;
      const answer = await client.transaction(take, limits);
      if (answer.succeeded) {
        seat.entered(answer.revision);
        return true;
      }
      seat.sent = false; // certainly not written
      const holder = answer.results[0]?.kvs[0];
      if (holder === undefined) throw contradiction(seat);
      seat.met(holder);
      if (holder.lease === seat.lease) await removeRelic({ client, seat, limits }, holder);
      else if (!wait) return false;
      else await vigil.keep(holder);
    }
  }
}

/** In one transaction a key cannot both be there and not. */
function contradiction(seat: Seat): ConclaveError {
  return new ConclaveError(
    "unavailable",
    `etcd contradicts itself about the key of election "${seat.election}"; asking again`,
  );
}

/**
 * A key of ours that no term of ours owns: the put of a campaign that never
 * heard its answer. It is not adopted but removed, guarded by its own create
 * revision: a token is never used twice.
 */
async function removeRelic(
  { client, seat, limits }: Pick<Standing, "client" | "seat" | "limits">,
  relic: KeyValue | undefined,
): Promise<void> {
  if (relic === undefined) throw contradiction(seat);
  if (relic.lease !== seat.lease) {
    throw new ConclaveError(
      "conflict",
      `key ${JSON.stringify(relic.key)} should belong to our lease ${hex(seat.lease)} but is attached to ${hex(relic.lease)}: ` +
        `another program wrote it; remove it or choose another election name`,
    );
  }
  seat.met(relic);
  await client.transaction(removal(seat, relic.createRevision), limits);
}
