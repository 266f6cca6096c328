/**
 * A fence in etcd itself: changes of any keys, in one transaction that succeeds
 * only while the leader's own key still has the create revision that is its
 * token. etcd decides at the moment of the write.
 *
 * The highest token that wrote is stored too, so that the error for an old
 * leader names the newer token even if no candidate is left.
 */
import { NotLeaderError, StaleLeaderError } from "../../kit/errors.js";
import type { Bearer, FencedResource, FenceOptions } from "../../seam/fence.js";
import { checkName } from "../../kit/names.js";
import { checkToken, parseToken } from "../../kit/token.js";
import type { EtcdLayout } from "./backend.js";
import type { EtcdClient, KeyValue, Operation } from "./client.js";
import { Keys } from "./keys.js";
import { KeyLayout, type Layout, QueueLayout } from "./layouts.js";
import { rootOf } from "./options.js";

/** What an {@link EtcdFence} is opened with. */
export interface EtcdFenceOptions {
  readonly client: EtcdClient;
  /** The election whose leader may write. */
  readonly election: string;
  /** Name of the resource. Default: the election's. */
  readonly name?: string | undefined;
  /** As for the backend. */
  readonly prefix?: string | undefined;
  readonly layout?: EtcdLayout | undefined;
  /** Longest a single request may take. Default 5 s. */
  readonly attemptMs?: number | undefined;
}

/** A change of one key, given as it is in etcd: no prefix is added. */
export type EtcdChange = Extract<Operation, { kind: "put" | "delete" }>;

/** What a leader may do to keys of etcd under its token. */
export interface EtcdActs {
  check(options?: FenceOptions): Promise<void>;
  /** All of them or none, and only while this leader leads. */
  commit(changes: readonly EtcdChange[], options?: FenceOptions): Promise<void>;
  put(key: string, value: string, options?: FenceOptions): Promise<void>;
}

const DEFAULT_ATTEMPT_MS = 5_000;

/** The leader, and the highest token that wrote. */
interface FenceState {
  readonly leader: KeyValue | undefined;
  readonly highest: bigint | undefined;
}

/** A fence for keys of etcd: the check and the change are one transaction. */
export class EtcdFence implements FencedResource<EtcdActs> {
  readonly #client: EtcdClient;
  readonly #election: string;
  readonly #layout: Layout;
  readonly #highestKey: string;
  readonly #limitMs: number;

  constructor(options: EtcdFenceOptions) {
    const keys = new Keys(rootOf(options.prefix));
    this.#client = options.client;
    this.#election = checkName(options.election);
    this.#layout = options.layout === "key" ? new KeyLayout(keys) : new QueueLayout(keys);
    this.#highestKey = keys.record(checkName(`fence.etcd.${options.name ?? options.election}`));
    this.#limitMs = options.attemptMs ?? DEFAULT_ATTEMPT_MS;
  }

  async check(token: bigint, options: FenceOptions = {}): Promise<void> {
    await this.commit(token, [], options);
  }

  /** A `NotLeaderError` means: this leader's key is gone, and no newer one has written here. */
  async commit(token: bigint, changes: readonly EtcdChange[], options: FenceOptions = {}): Promise<void> {
    checkToken(token);
    const limits = { signal: options.signal ?? new AbortController().signal, limitMs: this.#limitMs };
    const before = await this.#client.transaction(
      { when: [], then: this.#questions(), otherwise: [] },
      limits,
    );
    const seen = readState(before.results);
    if (seen.leader?.createRevision !== token) throw refusal(token, this.#election, seen);
    const answer = await this.#client.transaction(
      {
        when: [{ target: "create", key: seen.leader.key, value: token }],
        then: [{ kind: "put", key: this.#highestKey, value: token.toString() }, ...changes],
        otherwise: this.#questions(),
      },
      limits,
    );
    if (!answer.succeeded) throw refusal(token, this.#election, readState(answer.results));
  }

  bind(bearer: Bearer): EtcdActs {
    const commit = async (changes: readonly EtcdChange[], options?: FenceOptions): Promise<void> => {
      bearer.assertHeld();
      await this.commit(bearer.token, changes, options);
    };
    return {
      check: (options) => commit([], options),
      commit,
      put: (key, value, options) => commit([{ kind: "put", key, value }], options),
    };
  }

  #questions(): Operation[] {
    const leader = this.#layout.leaderRange(this.#election);
    return [
      { kind: "range", ...leader, sort: "oldest-first", limit: 1, keysOnly: true },
      { kind: "range", key: this.#highestKey },
    ];
  }
}

function readState(results: readonly { readonly kvs: readonly KeyValue[] }[]): FenceState {
  return { leader: results[0]?.kvs[0], highest: parseToken(results[1]?.kvs[0]?.value) };
}

function refusal(token: bigint, election: string, { leader, highest }: FenceState): Error {
  const newest = [leader?.createRevision, highest].reduce<bigint>(
    (most, next) => (next !== undefined && next > most ? next : most),
    token,
  );
  if (newest > token) return new StaleLeaderError(token, newest);
  return new NotLeaderError(
    token,
    `the leader with token ${token} has no key in election "${election}" any more: its term is over; stop its work`,
  );
}
