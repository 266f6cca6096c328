/** Paths to answers. Every GET is safe, every answer is computed when it is asked for. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { isConclaveError } from "../kit/errors.js";
import type { Clock } from "../seam/clock.js";
import type { Access } from "./security.js";
import { answer, decode, LARGEST_BODY, notAllowed, pathOf, send, smallBody } from "./http.js";
import type { Assets } from "./http.js";
import { refuse } from "./security.js";
import { stream } from "./stream.js";
import type { ElectionView } from "./view.js";

export interface Context {
  readonly clock: Clock;
  readonly access: Access;
  readonly views: ReadonlyMap<string, ElectionView>;
  readonly metrics: (() => Promise<{ type: string; text: string }>) | undefined;
  /** Room for more event streams; each keeps a connection. */
  readonly streams: { readonly most: number; open: number };
  /** Pages and assets beside the API, by exact path. */
  readonly assets: Assets;
  /** Nothing is changed, whatever a token permits. */
  readonly observeOnly: boolean;
}

/** Probes say nothing of who leads, and the kubelet calls them by address and without a token. */
const PROBES = new Set(["/healthz", "/readyz"]);
const ELECTION = /^\/elections\/([^/]+)(?:\/(leading|events|resign|transfer))?$/;
/** What asks a leader for something. */
const ASKS = new Set<string | undefined>(["resign", "transfer"]);
const ONLY_OBSERVES = { error: "this server only observes" };

export async function route(
  context: Context,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = pathOf(request.url);
  if (path === null) return answer(response, 400, { error: "the path cannot be read" });
  const method = request.method ?? "";
  const changes = method !== "GET" && method !== "HEAD";
  const election = ELECTION.exec(path);
  // Before the token is asked for: none would help.
  if (changes && context.observeOnly && ASKS.has(election?.[2])) return answer(response, 403, ONLY_OBSERVES);
  if (!PROBES.has(path)) {
    // A browser that opens the page cannot send a token yet; the page holds nothing that needs one.
    const open = context.assets.has(path) && !changes;
    const access = open ? { ...context.access, exposed: false } : context.access;
    const refusal = refuse(request, access, changes);
    if (refusal) return answer(response, refusal.status, { error: refusal.reason });
  }
  if (changes && !(await smallBody(request)))
    return answer(response, 413, { error: `a body of at most ${LARGEST_BODY} bytes is read` });
  if (election) return onElection(context, request, response, decode(election[1]!), election[2]);
  if (changes)
    return method === "POST" || method === "PUT" || method === "DELETE" || method === "PATCH"
      ? notAllowed(response, "GET, HEAD")
      : answer(response, 501, { error: "no such method" });
  if (path === "/events") return events(context, [...context.views.values()], request, response);
  return onServer(context, response, path);
}

async function onServer(context: Context, response: ServerResponse, path: string): Promise<void> {
  const views = [...context.views.values()];
  const asset = context.assets.get(path);
  if (asset) return send(response, 200, asset.type, asset.body);
  switch (path) {
    case "/": {
      // As the leader-elector sidecar of Kubernetes answered: who leads the (first) election.
      const state = views[0]?.state();
      return state?.leader
        ? answer(response, 200, { name: state.leader.candidate })
        : answer(response, 503, { name: "" });
    }
    case "/elections":
      return answer(response, 200, { elections: [...context.views.keys()] });
    case "/healthz": {
      const endangered = views.filter((view) => view.endangered).map((view) => view.election.name);
      return endangered.length === 0
        ? answer(response, 200, { ok: true })
        : answer(response, 503, {
            ok: false,
            error: `leading, but unable to renew: ${endangered.join(", ")}`,
          });
    }
    case "/readyz": {
      const waiting = views.filter((view) => !view.informed).map((view) => view.election.name);
      return waiting.length === 0
        ? answer(response, 200, { ok: true })
        : answer(response, 503, {
            ok: false,
            error: `the store has not answered (recently) for: ${waiting.join(", ")}`,
          });
    }
    case "/metrics": {
      if (context.metrics === undefined)
        return answer(response, 404, { error: "metrics are off; install prom-client" });
      const { type, text } = await context.metrics();
      return send(response, 200, type, text);
    }
    default:
      return answer(response, 404, { error: "no such path; try /elections" });
  }
}

async function onElection(
  context: Context,
  request: IncomingMessage,
  response: ServerResponse,
  name: string | null,
  part: string | undefined,
): Promise<void> {
  const view = name === null ? undefined : context.views.get(name);
  if (view === undefined)
    return answer(response, 404, { error: "no such election here; GET /elections lists them" });
  if (ASKS.has(part) && context.observeOnly) return answer(response, 403, ONLY_OBSERVES);
  if (part === "resign")
    return request.method === "POST" ? resign(view, response) : notAllowed(response, "POST");
  if (part === "transfer")
    return request.method === "POST" ? transfer(view, request.url, response) : notAllowed(response, "POST");
  if (request.method !== "GET" && request.method !== "HEAD") return notAllowed(response, "GET, HEAD");
  if (part === "events") return events(context, [view], request, response);
  const state = view.state();
  if (part === "leading") {
    if (state === null)
      return answer(response, 503, {
        leading: false,
        error: "not known: the store has not answered recently",
      });
    return answer(response, state.leading ? 200 : 503, {
      leading: state.leading,
      validForMs: state.validForMs,
    });
  }
  if (state === null)
    return answer(response, 503, { error: "not known: the store has not answered recently enough" });
  return answer(response, 200, state);
}

async function resign(view: ElectionView, response: ServerResponse): Promise<void> {
  if (!view.election.leading) return answer(response, 409, { error: "this candidate does not lead" });
  await view.election.resign();
  return answer(response, 200, { resigned: true });
}

/** `?to=ID`: answers when somebody was seen to lead, or nobody in time. */
async function transfer(
  view: ElectionView,
  url: string | undefined,
  response: ServerResponse,
): Promise<void> {
  if (!view.election.leading) return answer(response, 409, { error: "this candidate does not lead" });
  const to = new URLSearchParams((url ?? "").replace(/^[^?]*/, "")).get("to");
  if (to === null) return answer(response, 400, { error: "say to whom: ?to=ID" });
  try {
    return answer(response, 200, { result: await view.election.transfer(to) });
  } catch (error) {
    if (!isConclaveError(error)) throw error;
    return answer(response, error.code === "invalid" ? 400 : 409, { error: error.message });
  }
}

function events(
  context: Context,
  views: readonly ElectionView[],
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { streams } = context;
  if (streams.open >= streams.most)
    return answer(response, 503, { error: `at most ${streams.most} event streams are served at once` });
  streams.open++;
  response.once("close", () => streams.open--);
  if (request.method === "HEAD") return answer(response, 200, {});
  stream(views, context.clock, response);
}
