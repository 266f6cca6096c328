/**
 * The two key layouts, each with its way to campaign. Both decide by the answer
 * to the last transaction they sent: what was read before a wait may have
 * changed meanwhile.
 */
import { ConclaveError } from "../../kit/errors.js";
import { sleep, untilAborted } from "../../kit/wait.js";
import type { Wish } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import type { CallLimits, EtcdClient, KeyValue, Transaction } from "./client.js";
import { candidateId, hex, type Keys } from "./keys.js";
import { type CandidateKey, joinOperations, removalOf } from "./candidate-key.js";
import type { SharedLease } from "./shared-lease.js";
import { heed } from "./clear-the-way.js";
import { PredecessorWatch } from "./predecessor-watch.js";
import { standAside, type Stance } from "./stand-aside.js";

export interface CampaignAttempt {
  readonly client: EtcdClient;
  readonly candidateKey: CandidateKey;
  readonly lease: SharedLease;
  readonly value: string;
  readonly wait: boolean;
  readonly limits: CallLimits;
  readonly clock: Clock;
  /** How long this candidate leaves a vacancy to others. */
  readonly standBackMs: () => number;
  /** The same for all attempts of a campaign. */
  readonly stance: Stance;
}

/** `true`: this candidate leads. `false`, only without waiting: another one does. `"left"`: it gave way, and has to join again. */
export type Outcome = boolean | "left";

export interface Layout {
  readonly succession: "fifo" | "unordered";
  /** Whether a leader can say who shall be next, and whether a candidate can leave a vacancy to others. */
  readonly honours: readonly Wish[];
  keyName(election: string, leaseHex: string): string;
  campaign(attempt: CampaignAttempt): Promise<Outcome>;
  /** Where to look for the leader. */
  leaderRange(election: string): { readonly key: string; readonly rangeEnd?: string };
  /** The election that a key belongs to; `undefined` if it is no candidate's. */
  electionOf(key: string): string | undefined;
  /** Display name of the key's owner. */
  leaderId(election: string, kv: KeyValue): string;
}

/** `<name>/<hex lease>`, lowest create revision leads: Go's `concurrency.Election`, `etcdctl elect`, `etcdctl lock`. */
export class QueueLayout implements Layout {
  readonly succession = "fifo";
  readonly honours: readonly Wish[] = ["heir", "stand-back"];
  readonly #keys: Keys;

  constructor(keys: Keys) {
    this.#keys = keys;
  }

  keyName(election: string, leaseHex: string): string {
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

  async campaign(attempt: CampaignAttempt): Promise<Outcome> {
    if (!attempt.wait) return this.#tryEnter(attempt);
    const watch = new PredecessorWatch(attempt.client, attempt.candidateKey, attempt.limits.signal);
    try {
      return (await this.#await(attempt, watch)) ?? true;
    } finally {
      watch.end();
    }
  }

  async #await(attempt: CampaignAttempt, watch: PredecessorWatch): Promise<"left" | undefined> {
    const { client, candidateKey, lease, limits } = attempt;
    const waiting = { client, candidateKey, keys: this.#keys };
    let predecessor = await this.#enter(attempt);
    let last = predecessor;
    const queue = this.#keys.queue(candidateKey.election);
    while (predecessor !== undefined) {
      last = predecessor;
      this.leaderId(candidateKey.election, predecessor);
      candidateKey.seenAhead(predecessor);
      await watch.untilChanged(predecessor);
      if (!lease.isFresh) await untilAborted(limits.signal, lease.fresh());
      if (candidateKey.touched) {
        candidateKey.touched = false;
        if ((await heed(waiting, limits)) === "left") return "left";
      }
      predecessor = await lease.predecessorLookup.find(candidateKey, candidateKey.token!, queue, limits);
    }
    if (last === undefined || attempt.standBackMs() <= 0) return undefined;
    const outcome = await standAside(waiting, last, attempt.stance, limits);
    if (outcome === "left") return "left";
    if (outcome === "changed")
      await lease.predecessorLookup.find(candidateKey, candidateKey.token!, queue, limits);
    return undefined;
  }

  /** Joins the queue and reads the predecessor in the same transaction; `undefined`: there is none, we lead. */
  async #enter(attempt: CampaignAttempt): Promise<KeyValue | undefined> {
    const { candidateKey, lease, value, limits } = attempt;
    const range = this.#keys.queue(candidateKey.election);
    for (;;) {
      if (!lease.isFresh) await untilAborted(limits.signal, lease.fresh());
      const answer = await lease.transactions.ask(
        {
          when: [{ target: "create", key: candidateKey.key, value: 0n }],
          then: [
            ...joinOperations(candidateKey, value),
            { kind: "range", ...range, sort: "newest-first", limit: 2, keysOnly: true },
          ],
          otherwise: [{ kind: "range", key: candidateKey.key, keysOnly: true }],
        },
        limits,
        () => {
          candidateKey.sent = true;
        },
      );
      if (answer.succeeded) {
        candidateKey.created(answer.revision);
        const [own, predecessor] = answer.results.at(-1)?.kvs ?? [];
        // Others may have joined other elections in the same transaction: the revision alone does not tell whose key it is.
        if (own?.key === candidateKey.key && own.createRevision === answer.revision) return predecessor;
        throw new ConclaveError(
          "unavailable",
          `etcd did not show the key it wrote for "${candidateKey.election}"`,
        );
      }
      await removeLeftover(attempt, answer.results[0]?.kvs[0]);
    }
  }

  /** Creates the key only if the queue is empty: a candidate that does not wait must not make others queue behind it. */
  async #tryEnter(attempt: CampaignAttempt): Promise<boolean> {
    const { candidateKey, lease, value, limits } = attempt;
    const range = this.#keys.queue(candidateKey.election);
    if (!lease.isFresh) await untilAborted(limits.signal, lease.fresh());
    const answer = await lease.transactions.ask(
      {
        when: [{ target: "create", ...range, value: 0n }],
        then: joinOperations(candidateKey, value),
        otherwise: [{ kind: "range", ...range, sort: "oldest-first", limit: 1, keysOnly: true }],
      },
      limits,
      () => {
        candidateKey.sent = true;
      },
    );
    if (answer.succeeded) {
      candidateKey.created(answer.revision);
      return true;
    }
    candidateKey.sent = false; // certainly not written
    const leader = answer.results[0]?.kvs[0];
    if (leader !== undefined) this.leaderId(candidateKey.election, leader);
    candidateKey.seenAhead(leader);
    if (leader?.key === candidateKey.key) await removeLeftover(attempt, leader);
    return false;
  }
}

/** One key, created if absent, under a lease, as hand-written programs do. The fastest candidate leads next. */
export class KeyLayout implements Layout {
  readonly succession = "unordered";
  readonly honours: readonly Wish[] = ["stand-back"];
  readonly #keys: Keys;

  constructor(keys: Keys) {
    this.#keys = keys;
  }

  keyName(election: string): string {
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

  async campaign(attempt: CampaignAttempt): Promise<Outcome> {
    const watch = new PredecessorWatch(attempt.client, attempt.candidateKey, attempt.limits.signal);
    try {
      return await this.#campaign(attempt, watch);
    } finally {
      watch.end();
    }
  }

  async #campaign(attempt: CampaignAttempt, watch: PredecessorWatch): Promise<boolean> {
    const { client, candidateKey, lease, value, wait, limits } = attempt;
    const take: Transaction = {
      when: [{ target: "create", key: candidateKey.key, value: 0n }],
      then: joinOperations(candidateKey, value),
      otherwise: [{ kind: "range", key: candidateKey.key, keysOnly: true }],
    };
    for (;;) {
      await untilAborted(limits.signal, lease.fresh());
      candidateKey.sent = true;
      const answer = await client.transaction(take, limits);
      if (answer.succeeded) {
        candidateKey.created(answer.revision);
        return true;
      }
      candidateKey.sent = false; // certainly not written
      const holder = answer.results[0]?.kvs[0];
      if (holder === undefined) throw contradiction(candidateKey);
      candidateKey.seenAhead(holder);
      if (holder.lease === candidateKey.lease) await removeLeftover({ client, candidateKey, limits }, holder);
      else if (!wait) return false;
      else {
        await watch.untilChanged(holder);
        const standBackMs = attempt.standBackMs();
        if (standBackMs > 0) await sleep(attempt.clock, standBackMs, limits.signal);
      }
    }
  }
}

/** One transaction cannot report a key as both present and absent. */
function contradiction(candidateKey: CandidateKey): ConclaveError {
  return new ConclaveError(
    "unavailable",
    `etcd contradicts itself about the key of election "${candidateKey.election}"; asking again`,
  );
}

/**
 * A key on our lease that no term owns: the put of a campaign that never got
 * its answer. It is removed, guarded by its create revision, and not adopted:
 * the same token must not be used for two terms.
 */
async function removeLeftover(
  { client, candidateKey, limits }: Pick<CampaignAttempt, "client" | "candidateKey" | "limits">,
  leftover: KeyValue | undefined,
): Promise<void> {
  if (leftover === undefined) throw contradiction(candidateKey);
  if (leftover.lease !== candidateKey.lease) {
    throw new ConclaveError(
      "conflict",
      `key ${JSON.stringify(leftover.key)} should belong to our lease ${hex(candidateKey.lease)} but is attached to ${hex(leftover.lease)}: ` +
        `another program wrote it; remove it or choose another election name`,
    );
  }
  candidateKey.seenAhead(leftover);
  await client.transaction(removalOf(candidateKey, leftover.createRevision), limits);
}
