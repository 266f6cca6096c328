/**
 * The demo as a page: the state of the stage as server-sent events, and the
 * buttons as POSTs that need the token in the address that was printed. The same
 * checks of Host, Origin and token as the sidecar's.
 */
import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { systemClock } from "../kit/clock.js";
import { dashboard } from "../dashboard/index.js";
import { connectionLimits } from "../sidecar/descriptors.js";
import { answer, decode, LARGEST_BODY, notAllowed, pathOf, send, smallBody } from "../sidecar/http.js";
import type { Assets } from "../sidecar/http.js";
import { hostsOf, isLoopback, refuse } from "../sidecar/security.js";
import type { Access } from "../sidecar/security.js";
import { openServer } from "../sidecar/server.js";
import { onGone, openStream } from "../sidecar/stream.js";
import { preciseNow } from "../terminal/lines.js";
import type { Address } from "../terminal/listen.js";
import { addNode, command, startDialer } from "./commands.js";
import type { CommandResult } from "./commands.js";
import type { Dialer } from "./dialer/dialer.js";
import type { DialerState } from "./dialer/model.js";
import type { DemoState } from "./model.js";
import { MOST_NODES } from "./choices.js";
import { commandPeers } from "./peers/commands.js";
import type { PeersState } from "./peers/model.js";
import type { Peers } from "./peers/peers.js";
import type { Stage } from "./stage.js";

export interface DemoPageOptions {
  /** `undefined`: the page shows the peers alone. */
  readonly stage: Stage | undefined;
  readonly dialer: Dialer | undefined;
  readonly peers: Peers;
  readonly ttlMs: number;
  readonly address: Address;
  /** Someone has pressed a button. */
  readonly intervened: () => void;
}

export interface DemoPage {
  /** With the token: whoever has it may press the buttons. */
  readonly url: string;
  close(): Promise<void>;
}

/** The one event of the demo's stream: all there is to show. */
interface Snapshot {
  readonly at: number;
  readonly ttlMs: number;
  readonly mostNodes: number;
  readonly state: DemoState | undefined;
  readonly dialer: DialerState | undefined;
  readonly peers: PeersState;
}

/** Changes within this long are told together. */
const GATHER_MS = 60;
/** Told even if nothing changes: a sign of life, and the time. */
const EVERY_MS = 1_000;
/** A port for each ordered pair of seven peers and each of two algorithms, and two sockets when it is used. */
const PEERS = 7 * 6 * 2 * 3;
/** Descriptors that pages never get: each node is a process with pipes. */
const RESERVED = 32 + 4 * MOST_NODES + PEERS;

export async function openDemoPage(options: DemoPageOptions): Promise<DemoPage> {
  const token = randomBytes(24).toString("base64url");
  const { host, port } = options.address;
  const access: Access = { exposed: !isLoopback(host), token, hosts: hostsOf(host, []) };
  const limits = connectionLimits(RESERVED);
  const feed = new Feed(options, limits.streams);
  const assets = await dashboard();
  const desk = { options, access, feed, assets };
  try {
    const server = await openServer({
      host,
      port,
      clock: systemClock,
      mostConnections: limits.connections,
      handle: (request, response) => route(desk, request, response),
    });
    const close = async (): Promise<void> => {
      feed.close();
      await server.close();
    };
    return { url: `${server.url}/ui#token=${token}`, close };
  } catch (error) {
    feed.close();
    throw error;
  }
}

interface Desk {
  readonly options: DemoPageOptions;
  readonly access: Access;
  readonly feed: Feed;
  readonly assets: Assets;
}

async function route(desk: Desk, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = pathOf(request.url);
  if (path === null) return answer(response, 400, { error: "the path cannot be read" });
  const changes = request.method !== "GET" && request.method !== "HEAD";
  const asset = desk.assets.get(path === "/" ? "/ui" : path);
  const open = asset !== undefined && !changes;
  const refusal = refuse(request, open ? { ...desk.access, exposed: false } : desk.access, changes);
  if (refusal) return answer(response, refusal.status, { error: refusal.reason });
  if (asset !== undefined)
    return changes ? notAllowed(response, "GET, HEAD") : send(response, 200, asset.type, asset.body);
  if (path === "/events") return changes ? notAllowed(response, "GET") : desk.feed.join(response);
  const act = orderOf(path, desk.options);
  if (act === null) return answer(response, 404, { error: "no such path" });
  if (request.method !== "POST") return notAllowed(response, "POST");
  if (!(await smallBody(request)))
    return answer(response, 413, { error: `a body of at most ${LARGEST_BODY} bytes is read` });
  const outcome = act();
  if (!outcome.done) return answer(response, outcome.status, { error: outcome.reason });
  desk.options.intervened();
  answer(response, 200, { done: true });
}

/** What a path asks for; `null`: nothing. */
function orderOf(path: string, { stage, dialer, peers }: DemoPageOptions): (() => CommandResult) | null {
  if (path.startsWith("/peers/")) {
    const parts = path
      .split("/")
      .slice(2)
      .map((part) => decode(part) ?? "");
    return () => commandPeers(peers, parts);
  }
  if (path === "/nodes" && stage !== undefined) return () => addNode(stage);
  const [, room, name = "", action = ""] = /^\/(nodes|dialer)\/([^/]+)(?:\/([a-z]+))?$/.exec(path) ?? [];
  if (room === "nodes" && action !== "" && stage !== undefined)
    return () => command(stage, decode(name) ?? "", action);
  if (room === "dialer" && action === "" && dialer !== undefined)
    return () => startDialer(dialer, decode(name) ?? "");
  return null;
}

/** Tells every open page what there is to show. */
class Feed {
  readonly #options: DemoPageOptions;
  readonly #mostReaders: number;
  readonly #readers = new Set<(event: string, data: object) => void>();
  readonly #offs: readonly (() => void)[];
  readonly #ticking: ReturnType<typeof setInterval>;
  #gathering: ReturnType<typeof setTimeout> | undefined;

  constructor(options: DemoPageOptions, mostReaders: number) {
    this.#options = options;
    this.#mostReaders = mostReaders;
    const gather = (): void => {
      if (this.#readers.size > 0) this.#gathering ??= setTimeout(() => this.#tell(), GATHER_MS);
    };
    this.#offs = [options.stage, options.dialer, options.peers].flatMap((part) => part?.on(gather) ?? []);
    this.#ticking = setInterval(() => this.#tell(), EVERY_MS);
  }

  join(response: ServerResponse): void {
    if (this.#readers.size >= this.#mostReaders)
      return answer(response, 503, { error: `at most ${this.#mostReaders} pages are served at once` });
    const reader = openStream(response);
    this.#readers.add(reader);
    onGone(response, () => this.#readers.delete(reader));
    reader("demo", this.#snapshot());
  }

  close(): void {
    for (const off of this.#offs) off();
    clearInterval(this.#ticking);
    clearTimeout(this.#gathering);
    this.#readers.clear();
  }

  #tell(): void {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    const snapshot = this.#snapshot();
    for (const reader of this.#readers) reader("demo", snapshot);
  }

  #snapshot(): Snapshot {
    const { stage, dialer, peers, ttlMs } = this.#options;
    const shown = { state: stage?.state, dialer: dialer?.state, peers: peers.state };
    return { at: preciseNow(), ttlMs, mostNodes: MOST_NODES, ...shown };
  }
}
