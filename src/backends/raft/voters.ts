/** The voters of a cluster, as candidates, leaders and observers reach them: by a network, or by the simulator. */
import type {
  BeatAnswer,
  BeatRequest,
  ElectionRequest,
  PreVoteRequest,
  ReleaseAnswer,
  ReleaseRequest,
  VoteAnswer,
  VoteRequest,
  WhoAnswer,
  WhoRequest,
} from "./messages.js";

export type AnswerTo<R extends ElectionRequest> = R extends PreVoteRequest | VoteRequest
  ? VoteAnswer
  : R extends BeatRequest
    ? BeatAnswer
    : R extends ReleaseRequest
      ? ReleaseAnswer
      : R extends WhoRequest
        ? WhoAnswer
        : never;

export interface Voters {
  /** The static list. A majority is always one of all of them. */
  readonly names: readonly string[];
  /** Rejects when no answer came within the limit: the request may have arrived, or may arrive later. */
  ask<R extends ElectionRequest>(voter: string, request: R, limitMs: number): Promise<AnswerTo<R>>;
}

/** Asks all at once. */
export function askAll<R extends ElectionRequest>(
  voters: Voters,
  request: R | ((voter: string) => R),
  limitMs: number,
): Map<string, Promise<AnswerTo<R>>> {
  const to = typeof request === "function" ? request : (): R => request;
  return new Map(voters.names.map((voter) => [voter, voters.ask(voter, to(voter), limitMs)]));
}
