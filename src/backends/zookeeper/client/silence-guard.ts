/** Gives a connection up when its server has not been heard of for too long. */
import type { Clock, Timer } from "../../../seam/clock.js";

/** A server that is not heard of for this share of the session's timeout is given up. */
const SILENCE = 2 / 3;
/** A timer that fires this late says that this process was away: what the server sent may lie in the socket. */
const LATE_MS = 50;

export class SilenceGuard {
  readonly #clock: Clock;
  readonly #giveUp: (why: string) => void;
  #heardAt: number;
  #timer: Timer | undefined;
  #closed = false;

  constructor(clock: Clock, giveUp: (why: string) => void) {
    this.#clock = clock;
    this.#giveUp = giveUp;
    this.#heardAt = clock.now();
  }

  /** The server sent something. */
  heard(): void {
    this.#heardAt = this.#clock.now();
  }

  /** Begins, when the server has said how long the session may last. */
  guard(timeoutMs: number): void {
    this.#sleep(timeoutMs * SILENCE);
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #sleep(limitMs: number): void {
    if (this.#closed) return;
    const clock = this.#clock;
    const dueAt = this.#heardAt + limitMs;
    this.#timer = clock.after(Math.max(0, dueAt - clock.now()), () => {
      if (clock.now() - this.#heardAt < limitMs) this.#sleep(limitMs);
      else if (clock.now() - dueAt > LATE_MS) this.#timer = clock.after(LATE_MS, () => this.#end(limitMs));
      else this.#end(limitMs);
    });
  }

  #end(limitMs: number): void {
    if (this.#clock.now() - this.#heardAt < limitMs) return this.#sleep(limitMs);
    this.#giveUp(`nothing was heard for ${Math.round(limitMs)} ms`);
  }
}
