/**
 * One candidate's node in one election: an ephemeral node that lives as long as
 * its session. Used for one campaign; its token, once known, does not change.
 * What is not known (did the create arrive?) it remembers as unknown.
 */
import { ConclaveError } from "../../kit/errors.js";
import type { Stop } from "../../kit/stop.js";
import type { Created } from "./client.js";

export type NodeState = "standing" | "held" | "left";

export interface NodeRequest {
  readonly election: string;
  readonly candidate: string;
  /** Node of the election. */
  readonly parent: string;
  /** Begin of the candidate's name; no other node of this election begins like it. */
  readonly prefix: string;
  readonly seen?: ((token: bigint) => void) | undefined;
}

/** Its loss is what core hears of a hold's revocation; it is small, since there may be thousands. */
export class CandidateNode implements Stop {
  readonly election: string;
  readonly candidate: string;
  readonly parent: string;
  readonly prefix: string;
  state: NodeState = "standing";
  /** Known once the create was answered. */
  path: string | undefined;
  token: bigint | undefined;
  /** A create was sent: the node may exist, whether or not an answer came. */
  sent = false;
  /** Nobody but the leader is before it: its turn may come at any moment. */
  next = false;
  /** Instant of the question that was last handed to core by itself. */
  handedOut = 0;
  /** Instant at which the last check was sent that found the node. */
  checkedAt = -Infinity;
  readonly #seen: (token: bigint) => void;
  #why: string | undefined;
  #lost: ConclaveError | undefined;
  #wake: (() => void) | undefined;
  #woken = false;
  #listener: (() => void) | undefined;

  constructor(request: NodeRequest) {
    this.election = request.election;
    this.candidate = request.candidate;
    this.parent = request.parent;
    this.prefix = request.prefix;
    this.#seen = request.seen ?? (() => {});
  }

  get aborted(): boolean {
    return this.#why !== undefined;
  }

  get reason(): unknown {
    return this.lost;
  }

  /** One listener, told once: core's. */
  addEventListener(_type: "abort", listener: () => void): void {
    this.#listener = listener;
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    if (this.#listener === listener) this.#listener = undefined;
  }

  /** Why the node is gone for certain, if it is. */
  get lost(): ConclaveError | undefined {
    if (this.#why === undefined) return undefined;
    return (this.#lost ??= new ConclaveError(
      "unavailable",
      `the place in election "${this.election}" was lost: ${this.#why}`,
    ));
  }

  entered({ path, stat }: Created): void {
    this.path = path;
    this.token = stat.czxid;
    this.#seen(stat.czxid);
  }

  /** Another candidate that is before us: our token must be higher. */
  met(token: bigint): void {
    if (this.token === undefined || token < this.token) this.#seen(token);
  }

  lose(why: string): void {
    if (this.#why !== undefined || this.state === "left") return;
    this.#why = why;
    this.wake();
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.();
  }

  /** Nothing of it is left in the store, or it is somebody else's task to see to that. */
  leave(): void {
    this.state = "left";
    this.wake();
  }

  /** Something happened that is a reason to look again. */
  readonly wake = (): void => {
    this.#woken = true;
    this.#wake?.();
  };

  /** Sleeps until {@link wake}. Wakes that nobody waited for are not lost. */
  untilWoken(signal: Stop): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        this.#wake = undefined;
        this.#woken = false;
        signal.removeEventListener("abort", done);
        if (signal.aborted) reject(signal.reason);
        else if (this.#why !== undefined) reject(this.lost);
        else resolve();
      };
      if (this.#woken || signal.aborted) return done();
      this.#wake = done;
      signal.addEventListener("abort", done);
    });
  }
}
