/**
 * Messages of Redis, on a connection of their own. Pub/Sub is fire and forget:
 * what is published while the connection is broken is lost. So whoever watches
 * polls underneath, and a watch ends when the connection breaks; the engine starts
 * it again.
 */
import type { Clock, Timer } from "../../seam/clock.js";
import { deferred, limited, onAbort } from "../../kit/wait.js";
import { StopSource } from "../../kit/stop.js";
import type { Driver, SubscriberLink } from "./driver.js";

/** A connection that is half open is noticed by a ping that stays unanswered. */
const PING_MS = 5_000;
const PATIENCE_MS = 2_000;
const CONNECT_MS = 5_000;

type Hear = (text: string) => void;

class Line {
  readonly link: SubscriberLink;
  readonly ready: Promise<void>;
  readonly hearers = new Map<string, Set<Hear>>();
  /** Resolves when nothing can be heard on it any more. */
  readonly broken = deferred<void>();
  /** Subscribing and unsubscribing go one after the other, or their order on the server would be chance. */
  #turn: Promise<unknown>;

  constructor(driver: Driver, clock: Clock, closed: StopSource) {
    this.link = driver.subscriber({
      message: (channel, text) => this.hearers.get(channel)?.forEach((hear) => hear(text)),
      broken: () => this.broken.resolve(),
    });
    this.ready = limited(clock, CONNECT_MS, closed, "connecting to Redis", () => this.link.ready);
    this.#turn = this.ready;
    this.#turn.catch(() => this.broken.resolve());
  }

  /** Resolves when messages of this channel arrive. */
  add(channel: string, hear: Hear): Promise<unknown> {
    const hearers = this.hearers.get(channel) ?? new Set();
    this.hearers.set(channel, hearers);
    hearers.add(hear);
    return this.#inTurn(() => (hearers.size > 0 ? this.link.subscribe(channel) : Promise.resolve()));
  }

  remove(channel: string, hear: Hear): void {
    const hearers = this.hearers.get(channel);
    hearers?.delete(hear);
    if (hearers === undefined || hearers.size > 0) return;
    this.#inTurn(async () => {
      if (hearers.size > 0 || this.hearers.get(channel) !== hearers) return;
      this.hearers.delete(channel);
      await this.link.unsubscribe(channel);
    }).catch(() => this.broken.resolve());
  }

  #inTurn(call: () => Promise<unknown>): Promise<unknown> {
    const result = this.#turn.then(call);
    this.#turn = result.catch(() => {});
    return result;
  }
}

export class Subscriber {
  readonly #driver: Driver;
  readonly #clock: Clock;
  readonly #closed = new StopSource();
  #line: Line | undefined;
  #timer: Timer | undefined;

  constructor(driver: Driver, clock: Clock) {
    this.#driver = driver;
    this.#clock = clock;
  }

  /** Hears this channel until the signal aborts or the connection breaks. `armed` is called when messages arrive from now on. */
  async hear(channel: string, hear: Hear, armed: () => void, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#closed.aborted) return;
    const line = (this.#line ??= this.#connect());
    const aborted = deferred<void>();
    const unlink = onAbort(signal, () => aborted.resolve());
    const heard = (text: string): void => {
      if (!signal.aborted) hear(text);
    };
    try {
      const added = line.add(channel, heard).then(() => {
        if (!signal.aborted) armed();
      });
      added.catch(() => line.broken.resolve());
      await Promise.race([aborted.promise, line.broken.promise]);
    } finally {
      unlink();
      line.remove(channel, heard);
    }
  }

  close(): void {
    this.#closed.stop();
    this.#line?.broken.resolve();
  }

  #connect(): Line {
    const line = new Line(this.#driver, this.#clock, this.#closed);
    void line.broken.promise.then(() => {
      if (this.#line === line) {
        this.#line = undefined;
        this.#timer?.cancel();
      }
      line.link.end();
    });
    this.#pingLater(line);
    return line;
  }

  #pingLater(line: Line): void {
    this.#timer = this.#clock.after(PING_MS, () => {
      if (this.#line !== line) return;
      const asked = limited(this.#clock, PATIENCE_MS, this.#closed, "pinging Redis", async () => {
        await line.ready;
        return line.link.ping();
      });
      asked.then(
        () => this.#line === line && this.#pingLater(line),
        () => line.broken.resolve(),
      );
    });
  }
}
