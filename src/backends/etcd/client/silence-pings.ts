/**
 * Detects a connection that no longer answers: while streams are open on it and
 * the server says nothing, it is pinged. One ping without an answer ends it.
 */
import type { Clock, Timer } from "../../../seam/clock.js";

/** etcd refuses clients that ping more often than this while it sends them nothing. */
const PING_EVERY_MS = 5_500;
const PING_ANSWER_MS = 2_000;
const TICK_MS = 1_000;
/** Pings sent early, because a call waits, before the server has to say something again. */
const EARLY_PINGS = 2;

export interface PingedConnection {
  ping(answered: () => void): void;
  /** Whether a call waits for an answer: then silence is noticed earlier. */
  waiting(): boolean;
  /** A ping was not answered in time. */
  silent(): void;
}

export class SilencePings {
  readonly #clock: Clock;
  readonly #connection: PingedConnection;
  /** Calls and streams that are open: without one nothing is sent. */
  #open = 0;
  #heardAt = 0;
  #closed = false;
  #tick: Timer | undefined;
  #tickDueAt = 0;
  #pingSentAt: number | undefined;
  #lastPingAt = 0;
  #earlyPings = 0;

  constructor(clock: Clock, connection: PingedConnection) {
    this.#clock = clock;
    this.#connection = connection;
  }

  opened(): void {
    this.#open++;
    this.#arm();
  }

  closed(): void {
    this.#open--;
  }

  /** The server said something of substance. */
  heard(now: number): void {
    this.#heardAt = now;
    this.#earlyPings = 0;
  }

  close(): void {
    this.#closed = true;
    this.#tick?.cancel();
  }

  #arm(): void {
    if (this.#tick !== undefined || this.#closed) return;
    this.#tickDueAt = this.#clock.now() + TICK_MS;
    this.#tick = this.#clock.after(TICK_MS, () => {
      this.#tick = undefined;
      this.#watchSilence(this.#clock.now());
      if (this.#open > 0) this.#arm();
    });
  }

  #watchSilence(now: number): void {
    if (this.#closed || this.#open === 0) return;
    if (this.#pingSentAt !== undefined) {
      // A late tick means that this process was paused: the answer may be unread in the socket.
      const late = now - this.#tickDueAt > TICK_MS;
      if (late) this.#pingSentAt = now;
      else if (now - this.#pingSentAt >= PING_ANSWER_MS) this.#connection.silent();
      return;
    }
    const silentMs = now - Math.max(this.#heardAt, this.#lastPingAt);
    const due = silentMs >= PING_EVERY_MS;
    const early = this.#connection.waiting() && silentMs >= TICK_MS && this.#earlyPings < EARLY_PINGS;
    if (!due && !early) return;
    if (!due) this.#earlyPings++;
    this.#lastPingAt = now;
    this.#pingSentAt = now;
    this.#connection.ping(() => {
      this.#pingSentAt = undefined;
    });
  }
}
