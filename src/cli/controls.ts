/** What commands for operators share: the election's control record, and a leader that is asked and watched. */
import { hostname, userInfo } from "node:os";
import type { Ask } from "../control/codec.js";
import { answerTo, askLeader } from "../control/requests.js";
import { ControlRecord } from "../control/record.js";
import { Election } from "../election/election.js";
import { systemClock } from "../kit/clock.js";
import { onAbort, sleep } from "../kit/wait.js";
import type { Backend, Leader } from "../seam/backend.js";
import type { RecordStore } from "../seam/table.js";
import { UsageError } from "../terminal/failure.js";
import type { Store } from "./store.js";

/** Longest that one request to the store may take. */
export const ATTEMPT_MS = 5_000;
/** How long after the end of a term its successor is waited for. */
const SUCCESSOR_MS = 2_000;

/** Records of a store, or bad usage where it keeps none. */
export function recordsIn({ backend, where }: Store, what: string, instead: string): RecordStore {
  const { records } = backend;
  if (records !== undefined) return records;
  throw new UsageError(`${where} keeps no records, so there is no ${what}: ${instead}`);
}

export function controlsIn(records: RecordStore, election: string): ControlRecord {
  return new ControlRecord({ records, election, clock: systemClock, attemptMs: ATTEMPT_MS });
}

/** Who asks, for people: the user and the machine. */
export function operator(): string {
  const machine = hostname();
  try {
    return `${userInfo().username}@${machine}`.slice(0, 100);
  } catch {
    return machine.slice(0, 100); // a user that the system has no entry of
  }
}

/** For reading about an election: no candidate of it. */
export function reader(backend: Backend, name: string): Election {
  return new Election({ name, backend, allowUnfenced: true });
}

/**
 * Who stands, by the roster; nobody if there is none. One that the present leader
 * is not on counts as none: those who kept it may all be gone.
 */
export async function standees(
  election: Election,
  leader: Leader,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (election.backend.records === undefined) return [];
  // It is advice: a roster that cannot be read keeps nobody from acting.
  const found = await election.candidates({ signal }).catch(() => []);
  const names = found.map(({ candidate }) => candidate);
  return names.includes(leader.candidate) ? names : [];
}

/** How a request to resign went. */
export type ResignResult =
  /** The term is over. `next`: who leads by now. */
  | { readonly kind: "resigned"; readonly next: Leader | null }
  | { readonly kind: "refused"; readonly why: string }
  /** The leader has begun, but its work had not stopped in time. */
  | { readonly kind: "slow" }
  /** No answer: the leader does not follow requests, or hangs. */
  | { readonly kind: "unheard" };

export interface ResignOptions {
  readonly signal: AbortSignal;
  readonly limitMs: number;
  /** Pauses the election in the same step: then no successor is waited for. */
  readonly pause: boolean;
  /** Default: to resign. */
  readonly ask?: Ask;
  /** How long after the end of the term its successor is waited for. */
  readonly successorMs?: number;
}

/** Asks the leader of this term to resign, and sees what becomes of it. */
export async function askToResign(
  record: ControlRecord,
  election: Election,
  leader: Leader,
  { signal, limitMs, pause, ask = { kind: "resign" }, successorMs = SUCCESSOR_MS }: ResignOptions,
): Promise<ResignResult> {
  const limited = new AbortController();
  const timer = systemClock.after(limitMs, () => limited.abort());
  const unlink = onAbort(signal, () => limited.abort());
  try {
    // Watched from before it is asked: the end of the term is not overlooked.
    const over = termOver(election, leader, limited.signal, pause ? 0 : successorMs);
    const request = await askLeader(record, ask, leader, { signal, by: operator(), pause });
    const answered = answerTo(record, request.id, { signal: limited.signal, limitMs });
    const refused = answered.then((answer) =>
      answer?.outcome === "refused" ? ({ kind: "refused", why: answer.detail } as const) : over,
    );
    const result = await Promise.race([over, refused]);
    if (result !== undefined) return result;
    signal.throwIfAborted();
    return { kind: (await answered)?.outcome === "accepted" ? "slow" : "unheard" };
  } finally {
    timer.cancel();
    unlink();
    limited.abort();
  }
}

/** `undefined`: it was not over by the time that the signal aborted. */
async function termOver(
  election: Election,
  { token }: Leader,
  signal: AbortSignal,
  successorMs: number,
): Promise<ResignResult | undefined> {
  const stop = new AbortController();
  const unlink = onAbort(signal, () => stop.abort());
  let over: ResignResult | undefined;
  try {
    for await (const leader of election.observe({ signal: stop.signal })) {
      if (leader?.token === token) continue;
      over = { kind: "resigned", next: leader };
      if (leader !== null || successorMs === 0) break;
      void sleep(systemClock, successorMs, stop.signal).then(() => stop.abort());
    }
    return over;
  } finally {
    unlink();
    stop.abort();
  }
}
