/**
 * The narrow interface between the backend and ZooKeeper. The wire client in
 * `client/` implements it, and so does the simulator, so that what is tested
 * there is the code that runs here.
 *
 * Requests belong to a connection, sessions outlive connections. Requests of one
 * connection are carried out and answered in the order they were sent. Nothing
 * is sent a second time: a throw means "unknown", unless it is a
 * {@link ZooKeeperError} with a code of the server.
 */
import type { Stop } from "../../kit/stop.js";
import type { Reading } from "../../seam/clock.js";

/** Every call is bounded by both. */
export interface CallLimits {
  readonly signal: Stop;
  readonly limitMs: number;
}

/** What ZooKeeper keeps about a node. */
export interface Stat {
  /** Transaction that created the node: rises forever, never given twice. */
  readonly czxid: bigint;
  /** Transaction that last changed its data. */
  readonly mzxid: bigint;
  readonly version: number;
  /** Session that an ephemeral node belongs to; 0 for others. */
  readonly ephemeralOwner: bigint;
  readonly numChildren: number;
}

/** How long a node lives, and whether the server completes its name. */
export type CreateMode = "persistent" | "ephemeral-sequential" | "container";

/** A node that was created. */
export interface Created {
  /** With the sequence number that the server appended, if it did. */
  readonly path: string;
  readonly stat: Stat;
}

/** A node that was read. */
export interface NodeData {
  readonly data: string;
  readonly stat: Stat;
}

/** One step of a transaction that changes something. */
export type Change =
  /** The node must exist. */
  | { readonly kind: "check"; readonly path: string }
  /** The node must exist. */
  | { readonly kind: "remove"; readonly path: string }
  /** Ephemeral; the node must not exist. */
  | { readonly kind: "create"; readonly path: string; readonly data: string }
  /** The node must exist, and its data have this version. */
  | { readonly kind: "write"; readonly path: string; readonly data: string; readonly version: number };

/** The first part of a `multi` that failed, and why. */
export interface FailedCheck {
  readonly index: number;
  /** ZooKeeper's error number. */
  readonly errno: number;
}

/** One connection of a session, to one server. It ends for good; the session then makes another. */
export interface ZooKeeperConnection {
  /**
   * The clocks just before its handshake was sent. The ensemble's leader extended
   * the session for it, if that was the leader: a write that is answered later on
   * this connection proves it.
   */
  readonly asked: Reading;
  /** Another object after the ensemble has certainly lost its memory. */
  readonly history: object;
  readonly closed: boolean;
  create(path: string, data: string, mode: CreateMode, limits: CallLimits): Promise<Created>;
  /** `false`: there is no such node. With `version`: only if its data has this version. */
  remove(path: string, limits: CallLimits, version?: number): Promise<boolean>;
  /** `null`: there is no such node, and then nothing is watched. `wake` is called once: at a change, or when the connection ends. */
  getData(path: string, limits: CallLimits, wake?: () => void): Promise<NodeData | null>;
  /** `null`: there is no such node. `wake` is called once, then also when the node is created. */
  exists(path: string, limits: CallLimits, wake?: () => void): Promise<Stat | null>;
  /** Names, without their parent; `null`: there is no such node, and then nothing is watched. */
  getChildren(path: string, limits: CallLimits, wake?: () => void): Promise<readonly string[] | null>;
  /** Writes if the data has this version. */
  setData(path: string, data: string, version: number, limits: CallLimits): Promise<Stat>;
  /**
   * One transaction of the ensemble that changes nothing: `undefined` if all of
   * these nodes exist. Either answer comes from a majority.
   */
  check(paths: readonly string[], limits: CallLimits): Promise<FailedCheck | undefined>;
  /** One transaction, carried out whole (`undefined`) or not at all. */
  commit(changes: readonly Change[], limits: CallLimits): Promise<FailedCheck | undefined>;
  /** Answered by the server at the other end alone: it proves nothing about the ensemble. */
  ping(limits: CallLimits): Promise<void>;
  /** Gives this connection up; the session connects anew, to another server if it knows one. */
  drop(why: string): void;
}

/** What is told of a session. Must not throw. */
export interface SessionListener {
  connected(connection: ZooKeeperConnection): void;
  /** The ensemble says that the session is over: its ephemeral nodes are gone, or will be. */
  expired(): void;
}

/** A session, kept over any number of connections. */
export interface ZooKeeperSession {
  readonly id: bigint;
  /** What the server granted. */
  readonly timeoutMs: number;
  /** Whether the ensemble ended it. */
  readonly expired: boolean;
  listen(listener: SessionListener): void;
  /** The connection in use, or the next one. */
  connected(limits: CallLimits): Promise<ZooKeeperConnection>;
  /** Ends the session: its ephemeral nodes are deleted. Throws = unknown; then it runs out by itself. */
  close(limits: CallLimits): Promise<void>;
  /** Closes its connection and makes no other: the session runs out at the server. */
  abandon(): void;
}

/** Opens sessions. */
export interface ZooKeeperClient extends AsyncDisposable {
  /** A new session of about this timeout. Throws if none of the servers grants one. */
  openSession(timeoutMs: number, limits: CallLimits): Promise<ZooKeeperSession>;
}
