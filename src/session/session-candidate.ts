/**
 * One candidate in one election, on a session that many share. Used for one
 * campaign. It is also the revocation signal of its hold: one object fewer for
 * each of thousands of holds.
 */
import { ConclaveError } from "../kit/errors.js";
import type { Stop } from "../kit/stop.js";

/** Which candidate campaigns in which election. */
export interface SessionCandidateRequest {
  readonly election: string;
  readonly candidate: string;
  /** Called with every token that the campaign sees: its own, and those ahead of it. */
  readonly seen?: ((token: bigint) => void) | undefined;
}

export class SessionCandidate implements Stop {
  readonly election: string;
  readonly candidate: string;
  state: "waiting" | "held" | "left" = "waiting";
  /** Monotonic time of the request last handed out to the holder: the next renewal must be newer. */
  handedOut = 0;
  protected readonly sawToken: (token: bigint) => void;
  /** Why it is certainly lost, if it is. The error is created lazily: most are never read. */
  #why: string | undefined;
  #lost: ConclaveError | undefined;
  #listener: (() => void) | undefined;
  #wakeWaiter: (() => void) | undefined;
  #woken = false;

  constructor(request: SessionCandidateRequest) {
    this.election = request.election;
    this.candidate = request.candidate;
    this.sawToken = request.seen ?? (() => {});
  }

  get aborted(): boolean {
    return this.#why !== undefined;
  }

  get reason(): unknown {
    return this.lost;
  }

  /** One listener, called once: the law's. */
  addEventListener(_type: "abort", listener: () => void): void {
    this.#listener = listener;
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    if (this.#listener === listener) this.#listener = undefined;
  }

  /** Why its place in the election is certainly lost, if it is. */
  get lost(): ConclaveError | undefined {
    if (this.#why === undefined) return undefined;
    return (this.#lost ??= new ConclaveError(
      "unavailable",
      `the place in election "${this.election}" was lost: ${this.#why}`,
    ));
  }

  lose(why: string): void {
    if (this.#why !== undefined || this.state === "left") return;
    this.#why = why;
    this.gone();
    this.wake();
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.();
  }

  /** Nothing of it is in the store any more, or the session removes it. */
  leave(): void {
    this.state = "left";
    this.wake();
  }

  /** The waiting candidate should read again. */
  readonly wake = (): void => {
    this.#woken = true;
    this.#wakeWaiter?.();
  };

  /** Waits for {@link wake}. A wake while nobody waits is kept for the next call. */
  untilWoken(signal: Stop): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        this.#wakeWaiter = undefined;
        this.#woken = false;
        signal.removeEventListener("abort", done);
        if (signal.aborted) reject(signal.reason);
        else if (this.#why !== undefined) reject(this.lost);
        else resolve();
      };
      if (this.#woken || signal.aborted) return done();
      this.#wakeWaiter = done;
      signal.addEventListener("abort", done);
    });
  }

  /** It was lost: called before anybody is told. */
  protected gone(): void {}
}
