/**
 * A model of Consul behind the client of its backend: locks of sessions that end
 * by the *server's* clock after twice their ttl, lock delays, transactions,
 * blocking queries whose index goes back with the store.
 *
 * Also modelled: a server that was deposed and does not know it, which answers
 * renewals although it can extend nothing; one that has just been elected and
 * denies sessions that it has not read of yet; nodes that leave, and sessions
 * that end with them.
 */
import type {
  CallLimits,
  ConsulClient,
  KeyRange,
  KeyValue,
  Operation,
  ReadAnswer,
  Refusal,
  SessionRequest,
  TransactionAnswer,
} from "../../backends/consul/client.js";
import type { Clock } from "../../seam/clock.js";
import { limited } from "../../kit/wait.js";
import { ConsulPolls } from "./consul-polls.js";
import type { ConsulLink, Timeline } from "./consul-polls.js";
import type { Oscillator } from "./oscillator.js";
import type { Random } from "./random.js";

interface Session {
  readonly id: string;
  readonly node: string;
  readonly ttlMs: number;
  readonly lockDelayMs: number;
  expiresAt: number;
}

/** A key, and the token of whoever holds its lock. */
interface Stored extends KeyValue {
  readonly token: bigint | undefined;
}

/** What a snapshot keeps. Lock delays are in no snapshot. */
interface Snapshot {
  readonly kvs: ReadonlyMap<string, Stored>;
  readonly sessions: readonly Session[];
  readonly index: bigint;
}

/** Consul waits this many ttls. */
const TTL_MULTIPLIER = 2;
/** How late the server may notice that a session has run out. */
const EXPIRY_SLACK_MS = 500;
/** How long a new leader may not know all sessions. */
const UNREAD_MS = 1_500;
/** Indexes rise by this much, and each life of the store has a remainder of its own: no number is given twice. */
const STEP = 16n;

export interface ConsulServerOptions {
  readonly scheduler: Timeline;
  readonly oscillator: Pick<Oscillator, "mono" | "whenMono">;
  readonly random: Random;
  readonly onChange?: (kv: KeyValue) => void;
  /** The lock of this token was released, or its session ended. */
  readonly onGone?: (token: bigint) => void;
  /** A campaign that has read this version of the key asks for its lock. */
  readonly onLock?: (link: ConsulLink, key: string, index: bigint) => void;
}

export class ConsulServer {
  /** Until then a deposed leader, which is sure it still leads, answers the renewals of these nodes. */
  readonly deposedFor = new Map<string, number>();
  readonly #options: ConsulServerOptions;
  readonly #kvs = new Map<string, Stored>();
  readonly #sessions = new Map<string, Session>();
  readonly #lockDelays = new Map<string, number>();
  readonly #polls: ConsulPolls;
  readonly #forgotten = new Set<bigint>();
  #losses = 0n;
  #highest = 0n;
  #index = STEP;
  #unreadUntil = -Infinity;

  constructor(options: ConsulServerOptions) {
    this.#options = options;
    this.#polls = new ConsulPolls(options.scheduler, (range) => this.#read(range));
  }

  /** The client of one process. */
  connect(link: ConsulLink, clock: Clock): ConsulClient {
    const call = <T>(what: string, serve: () => T, limits: CallLimits): Promise<T> =>
      limited(clock, limits.limitMs, limits.signal, `${what} on Consul`, (signal) =>
        link.call(what, serve, signal),
      );
    return {
      createSession: (request, limits) => call("create", () => this.#create(request, link), limits),
      renewSession: (id, limits) => call("renew", () => this.#renew(id, link), limits),
      hasSession: (id, limits) => call("info", () => this.#sessions.has(id), limits),
      destroySession: (id, limits) => call("destroy", () => this.#invalidate(id), limits),
      transaction: (operations, limits) => {
        this.#note(link, operations);
        return call("transaction", () => this.#transact(operations), limits);
      },
      holds: (locks, limits) =>
        call(
          "check",
          () => locks.every(({ key, session }) => this.#kvs.get(key)?.session === session),
          limits,
        ),
      read: ({ range, since }, limits) =>
        since === undefined
          ? call("read", () => this.#read(range), limits)
          : limited(clock, limits.limitMs, limits.signal, "waiting on Consul", (signal) =>
              this.#polls.poll(link, range, since, signal),
            ),
      keys: (prefix, limits) =>
        call("keys", () => [...this.#kvs.keys()].filter((key) => key.startsWith(prefix)), limits),
      distrust: () => this.#polls.cut(link),
      [Symbol.asyncDispose]: async () => {},
    };
  }

  /** Whether the lock of this token is still held. */
  has(token: bigint): boolean {
    for (const kv of this.#kvs.values()) if (kv.token === token) return true;
    return false;
  }

  /** Whether the lock of this token was lost with the store's memory. */
  forgot(token: bigint): boolean {
    return this.#forgotten.has(token) && !this.has(token);
  }

  /** Whether this index was given before the store last lost its memory. */
  isPast(index: bigint): boolean {
    return index % STEP !== this.#losses;
  }

  backUp(): Snapshot {
    return { kvs: new Map(this.#kvs), sessions: [...this.#sessions.values()], index: this.#index };
  }

  /** The store goes back to an earlier state; without one it has forgotten all. Sessions are given their full time. */
  restore({ kvs, sessions, index }: Snapshot = { kvs: new Map(), sessions: [], index: 0n }): void {
    const before = [...this.#kvs.values()];
    if (this.#index > this.#highest) this.#highest = this.#index;
    this.#losses++;
    this.#kvs.clear();
    for (const [key, kv] of kvs) this.#kvs.set(key, kv);
    this.#sessions.clear();
    this.#lockDelays.clear();
    for (const session of sessions) this.#revive({ ...session });
    this.#index = (index / STEP) * STEP + STEP + this.#losses;
    for (const { token } of before) if (token !== undefined && !this.has(token)) this.#forgotten.add(token);
    this.#polls.abandon();
  }

  /** An operator writes until the index is above all there have been. */
  raise(): void {
    while (this.#index <= this.#highest) this.#index += STEP;
  }

  /** The servers changed their leader. Sessions are given their full time again, as Consul does. */
  failOver(): void {
    const { scheduler, random } = this.#options;
    for (const session of this.#sessions.values()) this.#extend(session);
    this.#unreadUntil = scheduler.now + random.next() * UNREAD_MS;
  }

  /** The node leaves the cluster, and its sessions end at once. */
  leave(node: string): void {
    for (const { id, node: owner } of [...this.#sessions.values()]) if (owner === node) this.#invalidate(id);
  }

  #now(): number {
    return this.#options.oscillator.mono(this.#options.scheduler.now);
  }

  #read(range: KeyRange): ReadAnswer {
    const kvs = [...this.#kvs.values()].filter(({ key }) =>
      "key" in range ? key === range.key : key.startsWith(range.prefix),
    );
    const newest = kvs.reduce((highest, kv) => (kv.modifyIndex > highest ? kv.modifyIndex : highest), 0n);
    return { index: newest === 0n ? this.#index : newest, kvs };
  }

  #transact(operations: readonly Operation[]): TransactionAnswer {
    const refuse = (refusal: Refusal): TransactionAnswer => ({ committed: false, refusal });
    // Judged by the leader before anything else, by its own clock.
    const delayed = operations.some(
      ({ verb, key }) => verb === "lock" && this.#now() < (this.#lockDelays.get(key) ?? -Infinity),
    );
    if (delayed) return refuse("lock-delay");
    const index = this.#index + STEP;
    const drafts = new Map<string, Stored>();
    for (const operation of operations) {
      const draft = this.#draft(operation, drafts.get(operation.key) ?? this.#kvs.get(operation.key), index);
      if (typeof draft === "string") return refuse(draft);
      if (draft !== undefined) drafts.set(operation.key, draft);
    }
    for (const draft of drafts.values()) this.#commit(draft, index);
    const last = operations.at(-1);
    return { committed: true, modifyIndex: this.#kvs.get(last?.key ?? "")?.modifyIndex ?? 0n };
  }

  /** What an operation makes of a key: a refusal, or nothing if it only looks. */
  #draft(operation: Operation, kv: Stored | undefined, index: bigint): Stored | Refusal | undefined {
    switch (operation.verb) {
      case "delete-cas":
        throw new Error("elections of the simulator are never forgotten");
      case "check-not-exists":
        return kv === undefined ? undefined : "changed";
      case "check-index":
        return kv?.modifyIndex === operation.index ? undefined : "changed";
      case "cas": {
        const { key, value, flags } = operation;
        if ((kv?.modifyIndex ?? 0n) !== operation.index) return "changed";
        return { key, value, flags, session: undefined, token: undefined, modifyIndex: index };
      }
      case "unlock": {
        const { key, value, flags, session } = operation;
        if (kv?.session !== session) return "held";
        return { key, value, flags, session: undefined, token: undefined, modifyIndex: index };
      }
      case "lock": {
        const { key, value, flags, session } = operation;
        if (!this.#sessions.has(session)) return "no-session";
        if (kv?.session !== undefined && kv.session !== session) return "held";
        const same = kv?.session === session;
        if (same && kv.value === value && kv.flags === flags) return kv; // unchanged: it keeps its index
        return { key, value, flags, session, token: same ? kv.token : index, modifyIndex: index };
      }
    }
  }

  #commit(kv: Stored, index: bigint): void {
    const before = this.#kvs.get(kv.key);
    if (before === kv) return;
    this.#index = index;
    this.#kvs.set(kv.key, kv);
    if (before?.token !== undefined && before.token !== kv.token) this.#options.onGone?.(before.token);
    this.#options.onChange?.(kv);
    this.#polls.changed(kv.key);
  }

  #create({ ttlSeconds, lockDelayMs }: SessionRequest, link: ConsulLink): string {
    const id = this.#options.random.hex(32);
    const node = link.process.node.id;
    this.#revive({ id, node, ttlMs: ttlSeconds * 1000, lockDelayMs, expiresAt: 0 });
    return id;
  }

  #renew(id: string, link: ConsulLink): boolean {
    const { now } = this.#options.scheduler;
    if (now < (this.deposedFor.get(link.process.node.id) ?? 0)) return true;
    const session = this.#sessions.get(id);
    if (session === undefined || now < this.#unreadUntil) return false;
    this.#extend(session);
    return true;
  }

  #invalidate(id: string): void {
    const session = this.#sessions.get(id);
    if (session === undefined) return;
    this.#sessions.delete(id);
    const index = this.#index + STEP;
    for (const kv of [...this.#kvs.values()].filter(({ session: holder }) => holder === id)) {
      if (session.lockDelayMs > 0) this.#lockDelays.set(kv.key, this.#now() + session.lockDelayMs);
      this.#commit({ ...kv, session: undefined, token: undefined, modifyIndex: index }, index);
    }
  }

  #note(link: ConsulLink, operations: readonly Operation[]): void {
    const [guard, ...rest] = operations;
    const lock = rest.at(-1);
    // A lock with a token in its value is held already: a new value is published.
    if (guard?.verb !== "check-index" || lock?.verb !== "lock" || lock.value.includes('"token":"')) return;
    this.#options.onLock?.(link, guard.key, guard.index);
  }

  #revive(session: Session): void {
    this.#sessions.set(session.id, session);
    this.#extend(session);
    this.#await(session);
  }

  #extend(session: Session): void {
    session.expiresAt = this.#now() + TTL_MULTIPLIER * session.ttlMs;
  }

  /** Looks at a session when it may have run out. */
  #await(session: Session): void {
    const { oscillator, scheduler, random } = this.#options;
    const time = oscillator.whenMono(session.expiresAt) + Math.max(0, random.next() - 0.3) * EXPIRY_SLACK_MS;
    scheduler.quietly(time, () => {
      if (this.#sessions.get(session.id) !== session) return;
      if (this.#now() >= session.expiresAt) this.#invalidate(session.id);
      else this.#await(session);
    });
  }
}
