/**
 * Requests to a leader: an operator writes one, the leader that it names carries
 * it out. Both ends go through the election's control record.
 *
 * ```ts
 * // operator
 * const request = await askLeader(record, { kind: "resign" }, leader, { signal, by: "me@host" });
 * const answer = await answerTo(record, request.id, { signal, limitMs: 10_000 });   // null: nobody listens
 * // leader, for each term
 * await serveRequests(record, term, { resign: () => { void end(); return "resigning"; } }, { signal, … });
 * ```
 */
import type { CallOptions } from "../seam/backend.js";
import { describe } from "../kit/errors.js";
import { onAbort } from "../kit/wait.js";
import type { Ask, ControlRequest, Controls, RequestAnswer } from "./codec.js";
import { followControls } from "./follow.js";
import type { FollowOptions } from "./follow.js";
import type { ControlRecord } from "./record.js";

/** A term: only a request that names exactly this one is meant for it. */
export interface AskedTerm {
  readonly candidate: string;
  readonly token: bigint;
}

/**
 * What a leader does on a request. Returns (or resolves) with one line for
 * whoever asked, as soon as it has *begun*; a throw refuses the request, with the
 * error's message.
 */
export type RequestHandlers = {
  readonly [K in Ask["kind"]]?: (
    ask: Extract<Ask, { readonly kind: K }>,
    request: ControlRequest,
  ) => string | Promise<string>;
};

/** How a request is made. */
export interface AskOptions extends CallOptions {
  /** Who asks; for people. */
  readonly by: string;
  /** Pauses the election in the same step. */
  readonly pause?: boolean;
}

/** Writes a request to the leader of this term. It takes the place of any before it. */
export async function askLeader(
  record: ControlRecord,
  ask: Ask,
  { candidate, token }: AskedTerm,
  { signal, by, pause = false }: AskOptions,
): Promise<ControlRequest> {
  const { clock } = record;
  const at = clock.wall();
  const request = { id: clock.uniqueId(), ask, candidate, token, at, by };
  const change = (now: Controls): Controls => {
    const paused = pause ? (now.pause ?? { since: at, by }) : now.pause;
    return { ...now, pause: paused, request, answer: null };
  };
  await record.change(change, { signal });
  return request;
}

/** The answer to a request; `null`: none came in this time, or another request took its place. */
export async function answerTo(
  record: ControlRecord,
  id: string,
  { signal, limitMs }: CallOptions & { readonly limitMs: number },
): Promise<RequestAnswer | null> {
  const limited = new AbortController();
  const timer = record.clock.after(limitMs, () => limited.abort());
  const unlink = onAbort(signal, () => limited.abort());
  try {
    const options = { signal: limited.signal, pollMs: 1_000, unpushedMs: 250 };
    for await (const { request, answer } of followControls(record, options)) {
      if (request?.id !== id) return null;
      if (answer?.id === id) return answer;
    }
    return null;
  } finally {
    timer.cancel();
    unlink();
    limited.abort();
  }
}

/**
 * For the time of one term: carries out the requests that name it, each once,
 * and answers them. Ends with `signal`, which should abort when the term stops;
 * an answer that is under way by then is still written. Never rejects.
 */
export async function serveRequests(
  record: ControlRecord,
  term: AskedTerm,
  handlers: RequestHandlers,
  options: FollowOptions,
): Promise<void> {
  const answering = new Set<Promise<void>>();
  const done = new Set<string>();
  for await (const controls of followControls(record, options)) {
    const { request } = controls;
    if (request === null || done.has(request.id) || !isFor(controls, term)) continue;
    done.add(request.id);
    const answered = carryOut(record, request, handlers).catch((error: unknown) => options.failed?.(error));
    answering.add(answered);
    void answered.then(() => answering.delete(answered));
  }
  await Promise.all(answering);
}

/** Whether this is an unanswered request to this very term. */
function isFor({ request, answer }: Controls, { candidate, token }: AskedTerm): boolean {
  if (request === null || answer?.id === request.id) return false;
  return request.candidate === candidate && request.token === token;
}

async function carryOut(
  record: ControlRecord,
  request: ControlRequest,
  handlers: RequestHandlers,
): Promise<void> {
  const answer = await answerOf(request, handlers);
  // Not the term's signal: it aborts with the very resignation that is answered here. Each step of it is bounded.
  const { signal } = new AbortController();
  await record.change((now) => (now.request?.id === request.id ? { ...now, answer } : null), { signal });
}

async function answerOf(request: ControlRequest, handlers: RequestHandlers): Promise<RequestAnswer> {
  const { id, ask } = request;
  try {
    const detail = await handled(ask, request, handlers);
    if (detail !== undefined) return { id, outcome: "accepted", detail };
    return { id, outcome: "refused", detail: `this leader does not take requests to ${ask.kind}` };
  } catch (error) {
    return { id, outcome: "refused", detail: describe(error) };
  }
}

function handled(
  ask: Ask,
  request: ControlRequest,
  handlers: RequestHandlers,
): string | Promise<string> | undefined {
  return ask.kind === "resign" ? handlers.resign?.(ask, request) : handlers.transfer?.(ask, request);
}
