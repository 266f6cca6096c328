/**
 * Elections over HTTP, for programs in any language and for load balancers.
 *
 * Answers say how long they may be relied on (`validForMs`, counted from when
 * the question was sent). A sidecar that cannot know answers 503: it never says
 * what was true before.
 */
import type { Clock } from "../seam/clock.js";
import { systemClock } from "../kit/clock.js";
import type { Election } from "../election/election.js";
import { invalid } from "../kit/errors.js";
import { connectionLimits } from "./descriptors.js";
import type { Assets } from "./http.js";
import { route } from "./routes.js";
import type { Context } from "./routes.js";
import { hostsOf, isLoopback } from "./security.js";
import { openServer } from "./server.js";
import { ElectionView } from "./view.js";

export type { Asset, Assets } from "./http.js";
export type { WireCandidate, WireElection, WireError, WireEvent, WireLeader } from "./protocol.js";

/** What a sidecar is started with. */
export interface SidecarOptions {
  /** The elections it speaks of. They stay yours: run and close them yourself. */
  readonly elections: readonly Election[];
  /** Address to listen on. Default `127.0.0.1`. Beyond loopback a token is required. */
  readonly host?: string | undefined;
  /** Default 0: any free port. */
  readonly port?: number | undefined;
  /** Shared secret for routes that change something, and for all routes beyond loopback. At least 16 characters. */
  readonly token?: string | undefined;
  /** Further host names clients call it by. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** What `GET /metrics` answers; see `conclave/metrics`. */
  readonly metrics?: (() => Promise<{ type: string; text: string }>) | undefined;
  /** Further files by exact path (the live page). They hold no secrets: no token is asked for them. */
  readonly assets?: Assets | undefined;
  /** It only observes: no route changes anything, and there may be no elections yet. Default `false`. */
  readonly observeOnly?: boolean | undefined;
  readonly clock?: Clock | undefined;
}

/** A running sidecar. */
export interface Sidecar extends AsyncDisposable {
  /** Where it listens, e.g. `http://127.0.0.1:4040`. */
  readonly url: string;
  /** Speaks of a further election from now on. Clients that follow all of them see it when they connect again. */
  add(election: Election): void;
  close(): Promise<void>;
}

const SHORTEST_TOKEN = 16;
/** Descriptors that clients never get: for the program itself, and for each election's requests and watches. */
const RESERVED = 32;
const RESERVED_PER_ELECTION = 4;

/** Starts an HTTP server that campaigns on behalf of programs beside it. */
export async function createSidecar(options: SidecarOptions): Promise<Sidecar> {
  const clock = options.clock ?? systemClock;
  const host = options.host ?? "127.0.0.1";
  const { observeOnly = false } = options;
  check(options, host);
  const views = new Map(
    options.elections.map((election) => [election.name, new ElectionView(election, clock, observeOnly)]),
  );
  const add = (election: Election): void => {
    if (views.has(election.name))
      throw invalid("a sidecar speaks of an election by its name; two have the same");
    views.set(election.name, new ElectionView(election, clock, observeOnly));
  };
  const limits = connectionLimits(RESERVED + RESERVED_PER_ELECTION * options.elections.length);
  const context: Context = {
    clock,
    views,
    access: {
      exposed: !isLoopback(host),
      token: options.token,
      hosts: hostsOf(host, options.allowedHosts ?? []),
    },
    metrics: options.metrics,
    streams: { most: limits.streams, open: 0 },
    assets: options.assets ?? new Map(),
    observeOnly,
  };
  const closeViews = async (): Promise<void> => {
    await Promise.all([...views.values()].map((view) => view.close()));
  };
  try {
    const server = await openServer({
      host,
      port: options.port ?? 0,
      clock,
      mostConnections: limits.connections,
      handle: (request, response) => route(context, request, response),
    });
    const close = async (): Promise<void> => {
      await Promise.all([server.close(), closeViews()]);
    };
    return { url: server.url, add, close, [Symbol.asyncDispose]: close };
  } catch (error) {
    await closeViews();
    throw error;
  }
}

function check({ elections, observeOnly, token, port }: SidecarOptions, host: string): void {
  if (elections.length === 0 && observeOnly !== true)
    throw invalid("a sidecar speaks of at least one election; pass one");
  const names = elections.map(({ name }) => name);
  if (new Set(names).size !== names.length)
    throw invalid("a sidecar speaks of an election by its name; two have the same");
  if (token !== undefined && token.length < SHORTEST_TOKEN)
    throw invalid(`the token has ${token.length} characters; use at least ${SHORTEST_TOKEN}`);
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw invalid(
      "the token holds characters that no HTTP header carries; use printable ASCII without spaces",
    );
  if (!isLoopback(host) && token === undefined)
    throw invalid(`listening on ${host}, beyond this machine, needs a token`);
  if (port !== undefined && (!Number.isInteger(port) || port < 0 || port > 65_535))
    throw invalid(`port must be a whole number from 0 to 65535, got ${port}`);
}
