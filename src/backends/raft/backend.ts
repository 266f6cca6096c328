/** Elections among peers: the voters are the store. */
import { systemClock } from "../../kit/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import { listing } from "../../kit/listing.js";
import { onAbort, sharedController, untilAborted } from "../../kit/wait.js";
import type {
  BackendWithRecords,
  CallOptions,
  CampaignOptions,
  Candidacy,
  Claim,
  Forgotten,
  Guarantees,
  Hold,
  Leader,
  Listing,
  ObserveOptions,
} from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import { Campaign } from "./candidate.js";
import type { ElectionRequest } from "./messages.js";
import type { EntryAnswer, NodeRequest } from "./node-messages.js";
import { observeLeader } from "./observe.js";
import { checkOptions } from "./options.js";
import type { RaftConfig, RaftOptions } from "./options.js";
import { Peering } from "./peering.js";
import { gather, majorityOf } from "./quorum.js";
import { RaftRecords } from "./records.js";
import { nodeOf } from "./shared-node.js";
import type { SharedNode } from "./shared-node.js";
import type { AnswerTo, Voters } from "./voters.js";
import { askAll } from "./voters.js";

const CLAIM_MS = 5_000;
const MOST_UNTOLD = 100;

export const raftGuarantees: Guarantees = {
  exclusion: "linearizable",
  expiry: "quorum",
  token: "term",
  succession: "unordered",
  ttl: { minMs: 300, stepMs: 1 },
};

/** How a process becomes a voter and reaches others. The simulator has its own. */
export interface RaftMeans {
  readonly node: typeof nodeOf;
  readonly peering: (config: RaftConfig, clock: Clock) => Peering;
}

export class RaftBackend implements BackendWithRecords {
  readonly name: string = "raft";
  readonly guarantees = raftGuarantees;
  readonly timing = { ttlMs: 2_000 };
  readonly records: RaftRecords;
  readonly #clock: Clock;
  readonly #means: RaftMeans;
  readonly #config: RaftConfig;
  readonly #log: (line: string) => void;
  /** Lines that nobody has been told yet, and who is told. */
  #untold: string[] = [];
  #warned: ((line: string) => void) | undefined;
  readonly #voters: Voters;
  readonly #closing = sharedController();
  #peering: Peering | undefined;
  #node: SharedNode | undefined;
  #closed: Promise<void> | undefined;
  readonly #campaigns = new Set<Promise<unknown>>();

  constructor(
    options: RaftOptions,
    env?: NodeJS.ProcessEnv,
    means: RaftMeans = { node: nodeOf, peering: peeringOf },
  ) {
    this.#means = means;
    this.#config = checkOptions(options, env);
    this.#clock = options.clock ?? systemClock;
    this.#log = (line) => {
      options.log?.(line);
      if (this.#warned !== undefined) this.#warned(line);
      else if (this.#untold.length < MOST_UNTOLD) this.#untold.push(line);
    };
    if (this.#config.doubt !== undefined) this.#log(`voter "${options.self}": ${this.#config.doubt}`);
    this.#voters = {
      names: this.#config.peers.map(({ name }) => name),
      ask: <R extends ElectionRequest>(voter: string, request: R, limitMs: number) =>
        this.#ask(voter, request, limitMs),
    };
    this.records = new RaftRecords((request, limitMs) => this.#carry(request, limitMs));
  }

  /** Makes this process a voter, if it is to be one. Without it the first use does. */
  async start(): Promise<void> {
    await this.#voter();
  }

  /** Why this voter takes no part yet, or any more; `undefined` if it does. */
  get unfit(): string | undefined {
    return this.#node?.node.unfit;
  }

  async campaign(candidacy: Candidacy, options: CampaignOptions): Promise<Hold | null> {
    this.#assertOpen();
    options.signal.throwIfAborted();
    await untilAborted(options.signal, this.#voter());
    const stop = new AbortController();
    const unlinks = [options.signal, this.#closing.signal].map((signal) =>
      onAbort(signal, () => stop.abort(signal.reason)),
    );
    const parts = { voters: this.#voters, clock: this.#clock };
    const running = new Campaign(parts, candidacy, { ...options, signal: stop.signal }).run();
    this.#campaigns.add(running);
    try {
      return await running;
    } finally {
      this.#campaigns.delete(running);
      for (const unlink of unlinks) unlink();
    }
  }

  async *observe(election: string, options: ObserveOptions): AsyncGenerator<Leader | null> {
    this.#assertOpen();
    await untilAborted(options.signal, this.#voter());
    const stop = new AbortController();
    const unlinks = [options.signal, this.#closing.signal].map((signal) =>
      onAbort(signal, () => stop.abort(signal.reason)),
    );
    try {
      yield* observeLeader(this.#voters, this.#clock, election, { ...options, signal: stop.signal });
    } finally {
      for (const unlink of unlinks) unlink();
    }
  }

  async release(
    { election, candidate, token }: Claim,
    { signal }: CallOptions,
  ): Promise<"released" | "not-held"> {
    this.#assertOpen();
    signal.throwIfAborted();
    await untilAborted(signal, this.#voter());
    const request = { kind: "release", election, term: token, candidate } as const;
    const majority = majorityOf(this.#voters.names.length);
    const asked = gather(askAll(this.#voters, request, CLAIM_MS), (answers) => {
      const told = [...answers.values()].filter(({ unfit }) => unfit === undefined);
      if (told.length < majority) return undefined;
      return told.some(({ held }) => held) ? ("released" as const) : ("not-held" as const);
    });
    return untilAborted(signal, asked);
  }

  /** As far as this process is a voter, or one tells: elections that a voter has taken part in. */
  async list({ signal }: CallOptions): Promise<Listing> {
    this.#assertOpen();
    signal.throwIfAborted();
    await untilAborted(signal, this.#voter());
    const { node } = this.#node ?? {};
    if (node !== undefined && node.unfit === undefined) return listing(node.elections(), true);
    const names: string[] = [];
    for (let after: string | undefined; ;) {
      const answer = await untilAborted(signal, this.#any({ kind: "state", part: "votes", after }, CLAIM_MS));
      if (answer.kind !== "state") throw new ConclaveError("unavailable", "a voter answered something else");
      names.push(...answer.votes.map(({ name }) => name));
      if (answer.next === undefined) return listing(names, true);
      after = answer.next;
    }
  }

  /** Voters never forget an election's highest term: their tokens are made of it. */
  async forget(): Promise<Forgotten> {
    this.#assertOpen();
    return "kept";
  }

  onWarning(listener: (message: string) => void): void {
    this.#warned ??= listener;
    for (const line of this.#untold.splice(0)) this.#warned(line);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#closing.abort(closed());
    await Promise.allSettled(this.#campaigns);
    this.#peering?.close();
    await this.#node?.release();
  }

  async #ask<R extends ElectionRequest>(voter: string, request: R, limitMs: number): Promise<AnswerTo<R>> {
    const answer = await this.#send(voter, request, limitMs);
    const wanted = request.kind === "prevote" ? "vote" : request.kind;
    if (answer.kind !== wanted)
      throw new ConclaveError("unavailable", `voter "${voter}" answered something else`);
    return answer as AnswerTo<R>;
  }

  async #send(
    voter: string,
    request: ElectionRequest | NodeRequest,
    limitMs: number,
  ): ReturnType<Peering["ask"]> {
    if (this.#node !== undefined && voter === this.#config.self?.name) return this.#node.node.handle(request);
    return this.#links.ask(voter, request, limitMs);
  }

  /** Own voter first; then those that are connected. One that takes no part has done nothing: the next is asked. */
  async #any(request: NodeRequest, limitMs: number): ReturnType<Peering["ask"]> {
    await this.#voter();
    const own = this.#node === undefined ? [] : [this.#config.self!.name];
    const others = this.#links.byReach();
    for (const voter of [...own, ...others]) {
      const answer = await this.#send(voter, request, limitMs).catch((error: unknown) => {
        if (request.kind === "write" || voter === others.at(-1)) throw error;
        return undefined;
      });
      if (answer !== undefined && !("unfit" in answer && answer.unfit !== undefined)) return answer;
    }
    throw new ConclaveError("unavailable", "no voter that takes part can be reached");
  }

  async #carry(request: NodeRequest, limitMs: number): Promise<EntryAnswer> {
    this.#assertOpen();
    const answer = await this.#any(request, limitMs);
    if (answer.kind !== "entry") throw new ConclaveError("unavailable", "a voter answered something else");
    return answer;
  }

  get #links(): Peering {
    if (this.#node !== undefined) return this.#node.peering;
    return (this.#peering ??= this.#means.peering(this.#config, this.#clock));
  }

  async #voter(): Promise<void> {
    if (this.#config.self === undefined || this.#node !== undefined) return;
    const node = await this.#means.node(this.#config, this.#clock, this.#log);
    if (this.#closed !== undefined || this.#node !== undefined) await node.release();
    else this.#node = node;
    this.#assertOpen();
  }

  #assertOpen(): void {
    if (this.#closed !== undefined) throw closed();
  }
}

export function peeringOf(config: RaftConfig, clock: Clock): Peering {
  const { peers, cluster, list, secret, self, dial } = config;
  const name = self?.name ?? `client:${clock.uniqueId()}`;
  return new Peering({ own: { name, voter: self !== undefined, cluster, list, secret }, peers, dial, clock });
}

function closed(): ConclaveError {
  return new ConclaveError("state", "this raft backend is closed; open a new one");
}
