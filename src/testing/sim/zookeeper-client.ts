/**
 * A process's way to the modelled ensemble. A connection behaves like TCP: what is
 * sent arrives in order, and after one message that is lost nothing arrives any
 * more, in either direction, until the connection is given up.
 */
import type {
  CallLimits,
  SessionListener,
  ZooKeeperClient,
  ZooKeeperConnection,
  ZooKeeperSession,
} from "../../backends/zookeeper/client.js";
import { connectionLost, ERRNO, isErrno, ZooKeeperError } from "../../backends/zookeeper/client/errors.js";
import { readClocks } from "../../kit/clock.js";
import { StopSource } from "../../kit/stop.js";
import { limited, onAbort, sleep, untilAborted } from "../../kit/wait.js";
import type { Clock, Reading } from "../../seam/clock.js";
import type { Link } from "./network.js";
import type { SimZooKeeper } from "./zookeeper-server.js";
import { UNANSWERED } from "./zookeeper-server.js";

export type ZooKeeperLink = Pick<Link, "call" | "notify"> & {
  readonly process: { readonly node: { readonly id: string } };
};

const HISTORY = {};
const RETRY_MS = 50;

/** All that a process's connections need. */
interface Way {
  readonly server: SimZooKeeper;
  readonly link: ZooKeeperLink;
  readonly clock: Clock;
}

export function simZooKeeper(server: SimZooKeeper, link: ZooKeeperLink, clock: Clock): ZooKeeperClient {
  const way = { server, link, clock };
  const sessions = new Set<SimSession>();
  return {
    openSession: async (timeoutMs, { signal, limitMs }) => {
      const asked = readClocks(clock);
      const connection = new SimConnection(way, asked);
      const granted = await limited(clock, limitMs, signal, "opening a session", (stop) => {
        onAbort(stop, () => connection.drop());
        return connection.send("connect", () => server.open(link.process.node.id, connection, timeoutMs));
      });
      const session = new SimSession(way, granted.id, timeoutMs, (ended) => sessions.delete(ended));
      sessions.add(session);
      session.use(connection);
      return session;
    },
    [Symbol.asyncDispose]: async () => {
      for (const session of sessions) session.abandon();
    },
  };
}

class SimSession implements ZooKeeperSession {
  readonly id: bigint;
  readonly timeoutMs: number;
  readonly #way: Way;
  readonly #ended: (session: SimSession) => void;
  readonly #stop = new StopSource();
  readonly #listeners = new Set<SessionListener>();
  #waiting = new Set<(connection: SimConnection) => void>();
  #connection: SimConnection | undefined;
  #expired = false;

  constructor(way: Way, id: bigint, timeoutMs: number, ended: (session: SimSession) => void) {
    this.#way = way;
    this.id = id;
    this.timeoutMs = timeoutMs;
    this.#ended = ended;
  }

  get expired(): boolean {
    return this.#expired;
  }

  listen(listener: SessionListener): void {
    this.#listeners.add(listener);
  }

  connected({ signal, limitMs }: CallLimits): Promise<ZooKeeperConnection> {
    if (this.#connection !== undefined) return Promise.resolve(this.#connection);
    if (this.#stop.aborted) return Promise.reject(this.#stop.reason);
    let wake: ((connection: SimConnection) => void) | undefined;
    const connected = limited(this.#way.clock, limitMs, signal, "connecting", () =>
      untilAborted(
        this.#stop,
        new Promise<SimConnection>((resolve) => {
          wake = resolve;
          this.#waiting.add(resolve);
        }),
      ),
    );
    return connected.finally(() => this.#waiting.delete(wake!));
  }

  async close(limits: CallLimits): Promise<void> {
    const connection = this.#connection;
    this.#end();
    try {
      await connection?.ask("close", () => this.#way.server.close(this.id, connection), limits);
    } finally {
      connection?.drop();
    }
  }

  abandon(): void {
    this.#end();
    this.#connection?.drop();
  }

  use(connection: SimConnection): void {
    if (this.#stop.aborted) return connection.drop();
    connection.session = this.id;
    connection.onClosed = () => {
      this.#connection = undefined;
      void this.#reconnect();
    };
    this.#connection = connection;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resolve of waiting) resolve(connection);
    for (const listener of this.#listeners) listener.connected(connection);
  }

  async #reconnect(): Promise<void> {
    const { server, link, clock } = this.#way;
    while (!this.#stop.aborted) {
      const connection = new SimConnection(this.#way, readClocks(clock));
      const unlink = onAbort(this.#stop, () => connection.drop());
      try {
        const known = await limited(clock, this.timeoutMs / 3, this.#stop, "connecting", (stop) =>
          untilAborted(
            stop,
            connection.send("reconnect", () => server.reopen(link.process.node.id, connection, this.id)),
          ),
        );
        return known ? this.use(connection) : this.#expire();
      } catch {
        connection.drop();
        await sleep(clock, RETRY_MS * (1 + clock.random()), this.#stop);
      } finally {
        unlink();
      }
    }
  }

  #expire(): void {
    if (this.#stop.aborted) return;
    this.#expired = true;
    this.#end();
    for (const listener of this.#listeners) listener.expired();
  }

  #end(): void {
    this.#stop.stop(new ZooKeeperError("lost", "unavailable", "the session is over"));
    this.#ended(this);
  }
}

class SimConnection implements ZooKeeperConnection {
  readonly asked: Reading;
  readonly history = HISTORY;
  session = 0n;
  onClosed: () => void = () => {};
  readonly #way: Way;
  readonly #stop = new StopSource();
  readonly #wakes = new Set<() => void>();
  /** Settles when what was sent before was answered: one after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(way: Way, asked: Reading) {
    this.#way = way;
    this.asked = asked;
  }

  get closed(): boolean {
    return this.#stop.aborted;
  }

  create: ZooKeeperConnection["create"] = (path, data, mode, limits) =>
    this.ask("create", () => this.#server.create(this.session, this, path, data, mode), limits);

  remove: ZooKeeperConnection["remove"] = (path, limits) =>
    this.ask("delete", () => this.#server.remove(this.session, this, path), limits);

  getData: ZooKeeperConnection["getData"] = (path, limits, wake) =>
    this.ask("getData", () => this.#server.read(this.session, this, path, this.#watch(wake)), limits);

  exists: ZooKeeperConnection["exists"] = (path, limits, wake) =>
    this.ask("exists", () => this.#server.exists(this.session, this, path, this.#watch(wake)), limits);

  getChildren: ZooKeeperConnection["getChildren"] = (path, limits, wake) =>
    this.ask("getChildren", () => this.#server.children(this.session, this, path, this.#watch(wake)), limits);

  setData: ZooKeeperConnection["setData"] = (path, data, version, limits) =>
    this.ask("setData", () => this.#server.write(this.session, this, path, data, version), limits);

  check: ZooKeeperConnection["check"] = (paths, limits) =>
    this.ask("check", () => this.#server.check(this.session, this, paths), limits);

  commit: ZooKeeperConnection["commit"] = (changes, limits) =>
    this.ask("commit", () => this.#server.commit(this.session, this, changes), limits);

  ping: ZooKeeperConnection["ping"] = (limits) =>
    this.ask("ping", () => this.#server.ping(this.session, this), limits);

  drop(): void {
    if (this.#stop.aborted) return;
    this.#stop.stop(connectionLost("the simulated ensemble", "it was given up"));
    this.onClosed();
    for (const wake of this.#wakes) wake();
  }

  ask<T>(
    what: string,
    serve: () => T,
    { signal, limitMs }: CallLimits,
  ): Promise<Exclude<T, typeof UNANSWERED>> {
    return limited(this.#way.clock, limitMs, signal, what, () => this.send(what, serve));
  }

  /** Without a limit of its own. */
  send<T>(what: string, serve: () => T): Promise<Exclude<T, typeof UNANSWERED>> {
    const sent = this.#last.then(() => this.#send(what, serve));
    // What was refused was answered; what was not answered holds everything up until the connection ends.
    this.#last = sent.catch(() => {});
    return sent;
  }

  async #send<T>(what: string, serve: () => T): Promise<Exclude<T, typeof UNANSWERED>> {
    if (this.#stop.aborted) throw this.#stop.reason;
    try {
      const answer = await this.#way.link.call(what, serve, this.#stop);
      if (answer !== UNANSWERED) return answer as Exclude<T, typeof UNANSWERED>;
    } catch (error) {
      // A reset, or an answer that says that this connection may not go on.
      if (isErrno(error, ERRNO.sessionMoved) || isErrno(error, ERRNO.sessionExpired)) this.drop();
      if (!(error instanceof ZooKeeperError)) this.drop();
      throw error;
    }
    return untilAborted(this.#stop, new Promise<never>(() => {}));
  }

  get #server(): SimZooKeeper {
    return this.#way.server;
  }

  /** An event that gets lost takes the connection with it. */
  #watch(wake: (() => void) | undefined): (() => void) | undefined {
    if (wake === undefined) return undefined;
    this.#wakes.add(wake);
    return () => {
      const told = this.#way.link.notify(() => {
        if (this.#wakes.delete(wake)) wake();
      });
      if (!told) this.#last = untilAborted(this.#stop, new Promise<never>(() => {})).catch(() => {});
    };
  }
}
