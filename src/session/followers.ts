/**
 * Who follows a session that many holds share. While nobody does, its holds live
 * by their own renewals alone, and by what extended the session until then.
 */
import type { Session, SessionFollower } from "../seam/backend.js";
import { UnfollowedHolds } from "./unfollowed-holds.js";
import type { PossibleHold, UnfollowedHoldsOptions } from "./unfollowed-holds.js";

/** What is told of one attempt to extend a session. */
export type Attempt = Parameters<SessionFollower["attempted"]>[0];

export class SessionFollowers<H extends PossibleHold> implements Pick<Session, "follow"> {
  readonly #followers = new Set<SessionFollower>();
  readonly #unfollowed: UnfollowedHolds<H>;
  #ended = false;

  constructor(options: UnfollowedHoldsOptions<H>) {
    this.#unfollowed = new UnfollowedHolds(options);
  }

  follow(follower: SessionFollower): () => void {
    this.#followers.add(follower);
    this.#unfollowed.stop();
    return () => {
      this.#followers.delete(follower);
      this.#unfollowed.extended();
      this.handedOut();
    };
  }

  /** A hold was handed out: if nobody follows, it is removed unless its owner renews it. */
  handedOut(): void {
    if (!this.#ended && this.#followers.size === 0) this.#unfollowed.watch();
  }

  attempted(attempt: Attempt): void {
    if (this.#ended) return;
    for (const follower of this.#followers) follower.attempted(attempt);
  }

  /** The session is gone: no term of those who follow is held from here on. */
  lost(): void {
    for (const follower of this.#followers) follower.lost();
  }

  /** Nothing is told, and no hold is watched, after this. */
  end(): void {
    this.#ended = true;
    this.#unfollowed.stop();
  }
}
