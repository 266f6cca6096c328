/** The caller's end: `fetch` with a token, and the refusal as the error it is everywhere else. */
import { StaleLeaderError } from "../kit/errors.js";
import type { Bearer } from "../seam/fence.js";
import { HIGHEST_HEADER, TOKEN_HEADER } from "./http.js";
import { checkToken, parseToken } from "../kit/token.js";

/** A function like the global `fetch`. */
export type Fetch = typeof fetch;

/**
 * A `fetch` that sends the bearer's token with every request. It rejects with a
 * `NotLeaderError` if the term is over before the request is sent, and with a
 * `StaleLeaderError` if the resource has seen a newer leader. A 409 of the
 * application's own is returned as it is.
 *
 * The term's signal is not attached: a request already sent may have taken
 * effect, and whether to wait for its answer is the caller's choice.
 */
export function fencedFetch(bearer: Bearer, send: Fetch = fetch): Fetch {
  return async (input, init) => {
    bearer.assertHeld();
    return tokenFetch(bearer.token, send)(input, init);
  };
}

/** The same for a bare token, where the term is in another process. */
export function tokenFetch(token: bigint, send: Fetch = fetch): Fetch {
  checkToken(token);
  return async (input, init) => {
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined));
    headers.set(TOKEN_HEADER, token.toString());
    const response = await send(input, { ...init, headers });
    const highest = response.status === 409 ? parseToken(response.headers.get(HIGHEST_HEADER)) : undefined;
    if (highest === undefined) return response;
    await response.body?.cancel().catch(() => {});
    throw new StaleLeaderError(token, highest);
  };
}
