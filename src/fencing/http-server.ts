/**
 * The resource's end: lets a request through to its handler only under a token
 * that is not older than any seen, and keeps newer leaders waiting until older
 * ones' requests have been answered. For node:http, Express and Fastify.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { ConclaveError, describe, isConclaveError } from "../kit/errors.js";
import type { StaleLeaderError } from "../kit/errors.js";
import type { Pass } from "./gate.js";
import type { Gate } from "./gate.js";
import { refusal, staleRefusal, TOKEN_HEADER } from "./http.js";
import type { Refusal } from "./http.js";
import { parseToken } from "../kit/token.js";
import { deferred } from "../kit/wait.js";

/** How an HTTP server checks tokens. */
export interface HttpFenceOptions {
  /**
   * Requests for which this says `false` pass without a token (health checks,
   * reads). Default: every request needs one.
   */
  readonly guarded?: ((request: IncomingMessage) => boolean) | undefined;
}

const passes = new WeakMap<IncomingMessage, Pass>();

/** Token and signal of a request that was let through. */
export function passOf(request: IncomingMessage): Pass | undefined {
  return passes.get(request);
}

/** Wraps a handler of node:http. */
export function fenceHandler(
  gate: Gate,
  handler: RequestListener,
  options: HttpFenceOptions = {},
): RequestListener {
  return (request, response) => {
    const pass = async (): Promise<void> => {
      const served = deferred<void>();
      const refused = await admit(gate, request, response, options, served.promise);
      if (refused !== null) return answer(response, refused);
      try {
        // Of an asynchronous handler: without it, one whose caller has gone would act beside a newer leader's.
        await (handler(request, response) as unknown);
      } finally {
        served.resolve();
      }
    };
    void pass();
  };
}

/** `(req, res, next)`, as Express and Connect call it. */
export function fenceMiddleware(
  gate: Gate,
  options: HttpFenceOptions = {},
): (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void {
  return (request, response, next) => {
    const pass = async (): Promise<void> => {
      const refused = await admit(gate, request, response, options);
      if (refused === null) next();
      else answer(response, refused);
    };
    void pass();
  };
}

/** The little of Fastify's request and reply that is needed. */
export interface FastifyRequestLike {
  readonly raw: IncomingMessage;
}
/** What is used of a Fastify reply. */
export interface FastifyReplyLike {
  readonly raw: ServerResponse;
  code(status: number): FastifyReplyLike;
  headers(values: Record<string, string>): FastifyReplyLike;
  send(body: string): unknown;
}

/** A hook for Fastify: `app.addHook("preHandler", fenceHook(gate))`. */
export function fenceHook(
  gate: Gate,
  options: HttpFenceOptions = {},
): (request: FastifyRequestLike, reply: FastifyReplyLike) => Promise<unknown> {
  return async (request, reply) => {
    const refused = await admit(gate, request.raw, reply.raw, options);
    if (refused === null) return undefined;
    reply
      .code(refused.status)
      .headers({ ...refused.headers })
      .send(refused.body);
    // A reply settles when it is sent. If the hook settled before (others may hook into sending), the handler would run.
    return reply;
  };
}

/** `null` = let through. Never rejects. `served`: when the handler has settled, if that is known. */
async function admit(
  gate: Gate,
  request: IncomingMessage,
  response: ServerResponse,
  options: HttpFenceOptions,
  served: Promise<void> = Promise.resolve(),
): Promise<Refusal | null> {
  try {
    if (options.guarded !== undefined && !options.guarded(request)) return null;
    const text = request.headers[TOKEN_HEADER.toLowerCase()];
    if (text === undefined)
      return refusal(428, "invalid", `send the leader's fencing token in the header ${TOKEN_HEADER}`);
    const token = parseToken(text);
    if (token === undefined)
      return refusal(400, "invalid", `${TOKEN_HEADER} must be one decimal number of at most 20 digits`);
    const pass = await gate.enter(token);
    if (response.closed || response.destroyed) {
      pass.leave();
      return refusal(503, "unavailable", "the caller has gone; nothing was done");
    }
    // "close" comes for every response, answered or cut off. A gone caller may leave its handler at work.
    response.once("close", () => {
      if (!response.writableFinished) pass.stop(new ConclaveError("state", "the caller has gone"));
      void served.then(pass.leave);
    });
    passes.set(request, pass);
    return null;
  } catch (error) {
    if (isStale(error)) return staleRefusal(error);
    return refusal(
      503,
      "unavailable",
      `the token could not be checked, nothing was done: ${describe(error)}`,
    );
  }
}

function answer(response: ServerResponse, { status, headers, body }: Refusal): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, headers);
  response.end(body);
}

/** Also of another copy of the library. */
function isStale(error: unknown): error is StaleLeaderError {
  return isConclaveError(error) && error.code === "stale-leader" && "highest" in error;
}
