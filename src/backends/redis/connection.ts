/**
 * The connection that commands go over. It is made when it is needed and given up
 * when it fails or falls silent; the next command makes another. Nothing is sent
 * a second time.
 */
import type { Clock } from "../../seam/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import { abortable } from "../../kit/driver.js";
import { StopSource } from "../../kit/stop.js";
import { limited, untilAborted } from "../../kit/wait.js";
import type { Driver, Link } from "./driver.js";
import { failure, isNoScript, isReply, isWrongServer, unreachable } from "./failures.js";
import type { Script } from "./scripts.js";

/** Longest a connection may take to be made. */
const CONNECT_MS = 5_000;
/** A call that its caller gave up sooner says nothing about the connection. */
const SILENT_MS = 100;

/** One call: what it is for, and how long it is waited for. */
export interface RedisCall {
  readonly what: string;
  readonly signal: AbortSignal;
}

interface Open {
  readonly link: Link;
  readonly ready: Promise<void>;
  heardAt: number;
}

export class Connection {
  readonly driver: Driver;
  readonly #clock: Clock;
  readonly #closed = new StopSource();
  #open: Open | undefined;

  constructor(driver: Driver, clock: Clock) {
    this.driver = driver;
    this.#clock = clock;
  }

  /** Runs a script on these keys, which are all in one slot. */
  async run(
    script: Script,
    keys: readonly string[],
    args: readonly string[],
    call: RedisCall,
  ): Promise<unknown> {
    const rest = [String(keys.length), ...keys, ...args];
    return this.#failing(call, async () => {
      try {
        return await this.#send(["EVALSHA", script.sha, ...rest], keys[0], call.signal);
      } catch (error) {
        // Not known to this server yet, or forgotten (SCRIPT FLUSH, a restart): it was not run.
        if (!isNoScript(error)) throw error;
        return this.#send(["EVAL", script.text, ...rest], keys[0], call.signal);
      }
    });
  }

  async command(args: readonly string[], call: RedisCall): Promise<unknown> {
    return this.#failing(call, () => this.#send(args, undefined, call.signal));
  }

  /** Ways to ask each node of a cluster; one way elsewhere. */
  async nodes(call: RedisCall): Promise<readonly ((args: readonly string[]) => Promise<unknown>)[]> {
    const { link } = await this.#failing(call, () => this.#ready(call.signal));
    const nodes = await link.nodes();
    return nodes.map((ask) => (args) => this.#failing(call, () => untilAborted(call.signal, ask(args))));
  }

  close(): void {
    this.#closed.stop(new ConclaveError("state", "the Redis backend is closed"));
    const open = this.#open;
    this.#open = undefined;
    open?.link.end();
  }

  async #failing<T>({ what, signal }: RedisCall, call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw failure(what, error, this.driver.secrets);
    }
  }

  async #send(args: readonly string[], key: string | undefined, signal: AbortSignal): Promise<unknown> {
    const open = await this.#ready(signal);
    const sentAt = this.#clock.now();
    const silent = (): void => {
      if (open.heardAt < sentAt && this.#clock.now() - sentAt >= SILENT_MS) this.#drop(open);
    };
    try {
      const answer = await abortable(signal, () => open.link.send(args, key), { cancel: silent });
      open.heardAt = this.#clock.now();
      return answer;
    } catch (error) {
      if (!signal.aborted && isReply(error)) open.heardAt = this.#clock.now();
      if (!signal.aborted && (!isReply(error) || isWrongServer(error))) this.#drop(open);
      throw error;
    }
  }

  async #ready(signal: AbortSignal): Promise<Open> {
    signal.throwIfAborted();
    if (this.#closed.aborted) throw this.#closed.reason;
    const open = (this.#open ??= this.#connect());
    try {
      await untilAborted(signal, open.ready);
    } catch (error) {
      throw signal.aborted ? error : unreachable(error, this.driver.hosts, this.driver.secrets);
    }
    return open;
  }

  #connect(): Open {
    const link = this.driver.link();
    const ready = limited(this.#clock, CONNECT_MS, this.#closed, "connecting to Redis", () => link.ready);
    const open: Open = { link, ready, heardAt: -Infinity };
    ready.catch(() => this.#drop(open));
    return open;
  }

  #drop(open: Open): void {
    if (this.#open === open) this.#open = undefined;
    open.link.end();
  }
}
