/**
 * Conclave beside client-go on one API server, with the same timings: lease 3 s,
 * renew deadline 2 s, retry 500 ms. What each peer says of itself counts: our
 * `term.held`, sampled every 2 ms; client-go's started and stopped callbacks.
 *   ROUNDS   handovers of each kind (default 10)
 */
import { ApiProxy } from "../../test/kubernetes/support/proxy.js";
import { Peer } from "../../test/kubernetes/support/peers.js";
import { startServer } from "../../test/kubernetes/support/server.js";
import type { Server } from "../../test/kubernetes/support/server.js";
import type { Row } from "../measure.js";
import { show, summarize } from "../measure.js";

type Kind = Peer["kind"];

const TIMING = { ttlMs: 3000, renewDeadlineMs: 2000, retryMs: 500 };
const ROUNDS = Number(process.env["ROUNDS"] ?? 10);
const FOLLOWERS = 10;
const WINDOW_MS = 20_000;
const LIMIT_MS = 20_000;
/** Twice the lease: long enough that someone else leads for a whole lease before the leader goes on. */
const STOPPED_MS = 6_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

class Side {
  readonly peers: Peer[] = [];
  #count = 0;

  constructor(
    readonly server: Server,
    readonly kind: Kind,
    readonly lease: string,
  ) {}

  start(): Peer {
    const id = `${this.kind}-${++this.#count}`;
    const peer =
      this.kind === "conclave"
        ? Peer.conclave(this.server, this.lease, id, TIMING)
        : Peer.clientGo(this.server, this.lease, id, TIMING);
    this.peers.push(peer);
    return peer;
  }

  async leader(): Promise<Peer> {
    const peer = this.start();
    await peer.next("started_leading", 0, LIMIT_MS);
    return peer;
  }

  async end(): Promise<void> {
    await Promise.all(this.peers.map((peer) => peer.end()));
  }
}

/** Milliseconds from the signal to the next leader's own word, `rounds` times. */
async function handovers(side: Side, signal: "SIGTERM" | "SIGKILL"): Promise<number[]> {
  const took: number[] = [];
  let leader = await side.leader();
  for (let round = 0; round < ROUNDS; round++) {
    const next = side.start();
    await next.next("starting", 0, LIMIT_MS);
    // At a random point of its poll and of the leader's renewal.
    await pause(1000 + Math.random() * 1000);
    const at = leader.signal(signal);
    took.push((await next.next("started_leading", at, LIMIT_MS)).at - at);
    leader = next;
  }
  return took;
}

/** Milliseconds in which a leader that was stopped and goes on claims to lead while its successor runs and claims it too. */
async function stopped(side: Side): Promise<{ readonly bothMs: number; readonly failoverMs: number }> {
  const leader = await side.leader();
  const next = side.start();
  await next.next("starting", 0, LIMIT_MS);
  await pause(1500);
  const at = leader.signal("SIGSTOP");
  const started = await next.next("started_leading", at, LIMIT_MS);
  await pause(Math.max(0, at + STOPPED_MS - Date.now()));
  const on = leader.signal("SIGCONT");
  if (side.kind === "conclave") {
    await leader.next("held", on, LIMIT_MS);
    const bothMs = Math.max(0, ...leader.stretches().map(({ to }) => to - on));
    return { bothMs, failoverMs: started.at - at };
  }
  const ended = await leader.next("stopped_leading", on, LIMIT_MS);
  return { bothMs: ended.at - on, failoverMs: started.at - at };
}

/** Requests a minute of ten followers while someone leads. */
async function idleConclave(server: Server): Promise<number> {
  const proxy = await ApiProxy.start(server.elector);
  const side = new Side(server, "conclave", "idle-conclave");
  const counted = { ...server, elector: proxy.kubeconfig(server.elector) };
  const followers = new Side(counted, "conclave", "idle-conclave");
  try {
    await side.leader();
    const peer = Peer.conclave(counted, "idle-conclave", "follower", TIMING, FOLLOWERS);
    followers.peers.push(peer);
    await pause(3000);
    const before = proxy.seen.length;
    await pause(WINDOW_MS);
    return ((proxy.seen.length - before) * 60_000) / WINDOW_MS;
  } finally {
    await followers.end();
    await side.end();
    await proxy.close();
  }
}

async function idleClientGo(server: Server): Promise<number> {
  const side = new Side(server, "client-go", "idle-client-go");
  try {
    await side.leader();
    const followers = Array.from({ length: FOLLOWERS }, (_, index) =>
      Peer.clientGo(server, "idle-client-go", `follower-${index}`, TIMING, true),
    );
    side.peers.push(...followers);
    await pause(3000);
    const count = (): number =>
      followers.reduce((sum, peer) => sum + peer.events.filter(({ event }) => event === "request").length, 0);
    const before = count();
    await pause(WINDOW_MS);
    return ((count() - before) * 60_000) / WINDOW_MS;
  } finally {
    await side.end();
  }
}

/** The same on both sides, one after the other. */
async function both<T>(
  server: Server,
  lease: string,
  measure: (side: Side) => Promise<T>,
): Promise<[T, T | undefined]> {
  const results: T[] = [];
  for (const kind of ["conclave", "client-go"] as const) {
    if (kind === "client-go" && server.candidate === undefined) break;
    const side = new Side(server, kind, `${lease}-${kind}`);
    try {
      results.push(await measure(side));
    } finally {
      await side.end();
    }
  }
  return [results[0]!, results[1]];
}

function row<T>(what: string, [ours, theirs]: [T, T | undefined], text: (value: T) => string): Row {
  return {
    what,
    result: text(ours),
    beside: theirs === undefined ? undefined : `client-go: ${text(theirs)}`,
  };
}

export default async function* bench(): AsyncGenerator<Row> {
  const server = await startServer();
  try {
    const graceful = await both(server, "graceful", (side) => handovers(side, "SIGTERM"));
    yield row("graceful handover (SIGTERM to the next leader)", graceful, (took) => show(summarize(took)));
    const crash = await both(server, "crash", (side) => handovers(side, "SIGKILL"));
    yield row("crash failover (SIGKILL, lease 3 s)", crash, (took) => show(summarize(took)));
    const frozen = await both(server, "frozen", stopped);
    yield row(
      "leader stopped for 6 s and let go on: both run and claim to lead",
      frozen,
      ({ bothMs }) => `${Math.round(bothMs)} ms`,
    );
    const idle: [number, number | undefined] = [
      await idleConclave(server),
      server.candidate === undefined ? undefined : await idleClientGo(server),
    ];
    yield row(`requests of ${FOLLOWERS} idle followers`, idle, (count) => `${Math.round(count)} a minute`);
  } finally {
    server.stop();
  }
}
