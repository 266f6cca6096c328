/**
 * One watch of one Lease, shared by everyone in this process who asks, kept
 * open across faults. What arrives is a hint: it wakes those who wait and feeds
 * the reader's memory. It never decides anything.
 */
import type { IncomingMessage } from "node:http";
import { StringDecoder } from "node:string_decoder";
import type { Clock } from "../../seam/clock.js";
import { ConclaveError, isRetriable } from "../../kit/errors.js";
import { bounded, onAbort, sleep } from "../../kit/wait.js";
import type { LeaseObject } from "./lease.js";
import type { Leases, WatchEvent } from "./leases.js";
import { parseEvent } from "./leases.js";

const LONGEST_LINE = 4 * 1024 * 1024;
/** The server ends a watch after this long; the next one goes on from there. */
const WATCH_SECONDS = 300;
/** First and longest pause before a broken watch is opened again. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
/** Opening a watch or the read before it must be answered within this. */
const OPEN_MS = 5_000;
/** A refusal (403) will not go away by itself soon: polling goes on underneath. */
const REFUSED_PAUSE_MS = 30_000;

/** What a watch asks the server for. */
type WatchedLeases = Pick<Leases, "get" | "watch" | "namespace">;

export interface WatcherSink {
  /** The object is there, in this version. */
  present(lease: LeaseObject): void;
  /** It was deleted, or was not there when the watch looked. */
  absent(): void;
  /** The newest version this process knows of: the watch may start after it. */
  known(): bigint | undefined;
}

export class Watcher {
  readonly #clock: Clock;
  readonly #leases: WatchedLeases;
  readonly #name: string;
  readonly #sink: WatcherSink;
  readonly #stopped = new AbortController();
  #subscribers = new Set<() => void>();
  #current: AbortController | undefined;
  /** Monotonic instant of the last sign of life while a watch is open. */
  #aliveAt: number | undefined;
  /** Newest version the open watch has delivered. */
  #delivered = 0n;
  /** A version someone else read that this watch has not delivered yet. */
  #missing: bigint | undefined;

  constructor(clock: Clock, leases: WatchedLeases, name: string, sink: WatcherSink) {
    this.#clock = clock;
    this.#leases = leases;
    this.#name = name;
    this.#sink = sink;
  }

  get subscribers(): number {
    return this.#subscribers.size;
  }

  /** Milliseconds since the open watch last said anything; `undefined` while none is open. */
  get silentMs(): number | undefined {
    return this.#aliveAt === undefined ? undefined : this.#clock.now() - this.#aliveAt;
  }

  subscribe(wake: () => void): () => void {
    // Each call is its own subscription, even of one function.
    const subscriber = (): void => wake();
    this.#subscribers.add(subscriber);
    if (this.#subscribers.size === 1) void this.#run();
    return () => {
      this.#subscribers.delete(subscriber);
    };
  }

  /**
   * A read found this version. A watch that still has not delivered it by the
   * next read is dead without knowing: it is cut and opened again.
   */
  compare(version: bigint): void {
    if (this.#aliveAt === undefined || version <= this.#delivered) {
      this.#missing = undefined;
    } else if (this.#missing === undefined || this.#missing <= this.#delivered) {
      this.#missing = version;
    } else {
      this.#missing = undefined;
      this.#current?.abort(new Error("the watch fell silent"));
    }
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #run(): Promise<void> {
    const stopped = this.#stopped.signal;
    let failures = 0;
    let fresh = false;
    while (!stopped.aborted) {
      let pause: number;
      try {
        const delivered = await this.#once(fresh, stopped);
        fresh = delivered === "gone";
        failures = delivered === "nothing" ? failures + 1 : 0;
        pause = failures === 0 ? FIRST_PAUSE_MS : backoff(failures);
      } catch (error) {
        failures++;
        pause = isRetriable(error) ? backoff(failures) : REFUSED_PAUSE_MS;
      }
      await sleep(this.#clock, pause * (0.5 + this.#clock.random()), stopped);
    }
  }

  /** One watch, from opening to its end. */
  async #once(fresh: boolean, stopped: AbortSignal): Promise<"events" | "nothing" | "gone"> {
    const current = new AbortController();
    const unlink = onAbort(stopped, () => current.abort(stopped.reason));
    this.#current = current;
    try {
      const since = await this.#start(fresh, current.signal);
      const response = await this.#open(since, current);
      this.#aliveAt = this.#clock.now();
      this.#delivered = since ?? 0n;
      this.#missing = undefined;
      return await this.#read(response);
    } finally {
      this.#aliveAt = undefined;
      this.#current = undefined;
      unlink();
      current.abort();
    }
  }

  /** Where to start: after what we know, else after what a read finds now. */
  async #start(fresh: boolean, signal: AbortSignal): Promise<bigint | undefined> {
    const known = fresh ? undefined : this.#sink.known();
    if (known !== undefined) return known;
    const lease = await bounded(this.#clock, OPEN_MS, signal, "reading a Lease before its watch", (s) =>
      this.#leases.get(this.#name, { signal: s }),
    );
    if (lease === null) this.#sink.absent();
    else this.#sink.present(lease);
    this.#wake();
    return lease?.version;
  }

  /** The opening is bounded; the stream that follows ends only with `current`. */
  async #open(since: bigint | undefined, current: AbortController): Promise<IncomingMessage> {
    const timer = this.#clock.after(OPEN_MS, () =>
      current.abort(new ConclaveError("timeout", "the watch was not opened in time")),
    );
    try {
      return await this.#leases.watch(this.#name, since, WATCH_SECONDS, current.signal);
    } finally {
      timer.cancel();
    }
  }

  #read(response: IncomingMessage): Promise<"events" | "nothing" | "gone"> {
    return new Promise((resolve, reject) => {
      const decoder = new StringDecoder("utf8");
      let rest = "";
      let outcome: "events" | "nothing" | "gone" = "nothing";
      const take = (line: string): void => {
        if (line.trim() === "") return;
        const event = parseEvent(line, `watching Lease ${this.#leases.namespace}/${this.#name}`);
        if (event.kind === "failed") throw event.error;
        if (event.kind === "gone") outcome = "gone";
        else this.#deliver(event);
        if (outcome === "nothing") outcome = "events";
      };
      response.on("data", (chunk: Buffer) => {
        try {
          const lines = (rest + decoder.write(chunk)).split("\n");
          rest = lines.pop() ?? "";
          if (rest.length > LONGEST_LINE) throw new ConclaveError("unavailable", "a watch event is too long");
          lines.forEach(take);
        } catch (error) {
          reject(error);
          response.destroy();
        }
      });
      response.once("error", () => resolve(outcome));
      response.once("close", () => resolve(outcome));
      if (response.destroyed) resolve(outcome);
    });
  }

  #deliver(event: Exclude<WatchEvent, { kind: "gone" | "failed" }>): void {
    this.#aliveAt = this.#clock.now();
    const version = event.kind === "bookmark" ? event.version : event.lease.version;
    if (version > this.#delivered) this.#delivered = version;
    if (event.kind === "bookmark") return;
    if (event.kind === "present") this.#sink.present(event.lease);
    else this.#sink.absent();
    this.#wake();
  }

  #wake(): void {
    for (const wake of [...this.#subscribers]) wake();
  }
}

function backoff(failures: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures, 10), LONGEST_PAUSE_MS);
}
