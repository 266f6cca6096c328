/** The play: three changes of leadership, each brought about by a signal, measured, and told with what to look for. */
import { systemClock } from "../kit/clock.js";
import { onAbort, sleep } from "../kit/wait.js";
import { formatDuration } from "../terminal/duration.js";
import type { DemoEvent, NodeView, Signal } from "./model.js";
import { leadingNode } from "./model.js";
import type { Stage } from "./stage.js";

export interface DirectorOptions {
  readonly stage: Stage;
  readonly names: readonly string[];
  readonly ttlMs: number;
  readonly signal: AbortSignal;
}

/** Nothing in the play takes as long: a machine that does is too slow to show anything. */
const LIMIT_MS = 60_000;
/** Time for people to read. */
const PAUSE_MS = 1_500;
const RESTART_MS = 2_000;

interface Fall {
  readonly what: string;
  readonly signal: Signal;
  readonly remark: string;
}

export class Director {
  readonly #options: DirectorOptions;
  /** Ends the play: someone else directs now. */
  readonly #yielded = new AbortController();

  constructor(options: DirectorOptions) {
    this.#options = options;
    onAbort(options.signal, () => this.#yielded.abort(options.signal.reason));
  }

  /** The whole play, once; or as far as it gets before someone else directs. */
  async play(): Promise<void> {
    try {
      await this.#opening();
      if (this.#options.names.length < 2) return; // nobody to succeed the leader
      await this.#handover();
      await this.#crash();
      if (process.platform !== "win32") await this.#freeze();
    } catch (error) {
      if (!this.yielded) throw error;
    }
  }

  /** Someone else directs from now on: the play is broken off. */
  yield(): void {
    this.#yielded.abort(new Error("someone else directs"));
  }

  get yielded(): boolean {
    return this.#yielded.signal.aborted && !this.#options.signal.aborted;
  }

  /** Keeps the nodes going until told to stop; whoever falls is started again. `page`: its address, which has scrolled away. */
  async goOn(page?: string): Promise<void> {
    const { stage, signal } = this.#options;
    const nodes = stage.state.nodes.map(({ name, pid }) => `${name} is process ${pid}`).join(", ");
    stage.emit({
      kind: "scene",
      title: "Your turn",
      lookFor: [
        `${nodes}.`,
        "Try kill -TERM, kill -KILL, or kill -STOP and kill -CONT on one of them from another terminal.",
        "Whoever ends is started again. Ctrl-C ends the demo.",
        ...(page === undefined ? [] : [`The page, with buttons for all of this: ${page}`]),
      ],
      onPage: [
        "Freeze the leader and watch its lease run out; thaw it, and its late write is refused.",
        "Cut it off from the store, kill it, add more. Ctrl-C in the terminal ends the demo.",
      ],
    });
    const off = stage.on((event) => {
      if (event.kind === "exited" && !signal.aborted) void this.#restart(event.node);
    });
    // The play may have been broken off while one was down.
    for (const { name, state } of stage.state.nodes) if (state === "gone") void this.#restart(name);
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    off();
  }

  async #opening(): Promise<void> {
    const { stage, names } = this.#options;
    stage.emit({
      kind: "scene",
      title: `${names.length} candidates, one leadership`,
      lookFor: [
        `${names.length} processes campaign in the same election. Exactly one is elected (👑), the others follow (👥).`,
        "The leader writes to a ledger, each time with its token. The ledger refuses tokens older than it has seen.",
      ],
    });
    for (const name of names) stage.start(name);
    await this.#settled();
    await this.#pause();
  }

  async #handover(): Promise<void> {
    this.#scene("Scene 1: the leader is stopped gracefully (SIGTERM)", [
      "It stops its work, resigns, and exits. The next one is elected at once, not after the ttl.",
      "The new token is higher than the old one.",
    ]);
    const { leader } = await this.#fall({
      what: "graceful handover",
      signal: "SIGTERM",
      remark: "given up, so nobody waits",
    });
    await this.#comeback(leader);
  }

  async #crash(): Promise<void> {
    this.#scene("Scene 2: the leader is killed (SIGKILL)", [
      "It cannot say goodbye. On one machine the others can see that its process is dead and need not wait for the ttl.",
      "Where they cannot see that (other machines, other stores), they wait for the lease to run out.",
    ]);
    const { leader } = await this.#fall({
      what: "crash failover",
      signal: "SIGKILL",
      remark: "seen to be dead",
    });
    await this.#comeback(leader);
  }

  async #freeze(): Promise<void> {
    const { stage, ttlMs } = this.#options;
    const { signal } = this.#yielded;
    const ttl = formatDuration(ttlMs);
    this.#scene("Scene 3: the leader is frozen (SIGSTOP), and wakes up too late", [
      `It is alive, so the others must wait until its lease has run out (ttl ${ttl}). Then one of them is elected.`,
      "When it wakes up, its clock tells it that its term is over, before it does anything.",
      "A write of its that was under way all the time comes to the ledger: refused, its token is too old.",
    ]);
    const { leader } = await this.#fall({
      what: "frozen leader replaced",
      signal: "SIGSTOP",
      remark: `its lease had to run out, ttl ${ttl}`,
    });
    await this.#pause();
    stage.signal(leader.name, "SIGCONT");
    await stage.until(`${leader.name} notices that its term is over`, LIMIT_MS, signal, (event) =>
      said(event, leader.name, "ended"),
    );
    await stage.until("the late write is refused", LIMIT_MS, signal, (event) =>
      event?.kind === "write" && event.late && !event.accepted ? event : undefined,
    );
    await this.#settled();
    await this.#pause();
  }

  /** The leader falls, another is elected, and the time between is measured. */
  async #fall({ what, signal: how, remark }: Fall): Promise<{ readonly leader: NodeView }> {
    const { stage } = this.#options;
    const { signal } = this.#yielded;
    const leader = await stage.until("someone leads", LIMIT_MS, signal, () => leadingNode(stage.state));
    const oldToken = leader.token ?? "?";
    // Listening comes first: the successor may be elected before we look.
    const succession = stage.until(`another one follows ${leader.name}`, LIMIT_MS, signal, (event) =>
      event?.kind === "said" && event.line.event === "elected" && event.node !== leader.name
        ? event
        : undefined,
    );
    const at = stage.signal(leader.name, how);
    const elected = await succession;
    const newToken = elected.line.token ?? "?";
    const measure = {
      what,
      from: leader.name,
      to: elected.node,
      oldToken,
      newToken,
      ms: elected.line.at - at,
      remark,
    };
    if (BigInt(newToken) <= BigInt(oldToken)) throw new Error(`token ${newToken} is not above ${oldToken}`);
    stage.emit({ kind: "measured", measure });
    return { leader };
  }

  /** The fallen one is started again and follows. */
  async #comeback(leader: NodeView): Promise<void> {
    const { stage } = this.#options;
    const { signal } = this.#yielded;
    const { name } = leader;
    const view = (): NodeView | undefined => stage.state.nodes.find((node) => node.name === name);
    await stage.until(`${name} ends`, LIMIT_MS, signal, () => (view()?.state === "gone" ? true : undefined));
    stage.start(name);
    await this.#settled();
    await this.#pause();
  }

  /** One leads, all others follow. */
  async #settled(): Promise<void> {
    const { stage } = this.#options;
    const { signal } = this.#yielded;
    await stage.until("one leads and all others follow", LIMIT_MS, signal, () => {
      const leaders = stage.state.nodes.filter((node) => node.state === "leader");
      const followers = stage.state.nodes.filter((node) => node.state === "follower");
      return leaders.length === 1 && leaders.length + followers.length === stage.state.nodes.length
        ? true
        : undefined;
    });
  }

  async #restart(name: string): Promise<void> {
    const { stage, signal } = this.#options;
    await sleep(systemClock, RESTART_MS, signal);
    const there = stage.state.nodes.some((node) => node.name === name);
    if (!signal.aborted && there && !stage.rests(name)) stage.start(name);
  }

  #scene(title: string, lookFor: readonly string[]): void {
    this.#options.stage.emit({ kind: "scene", title, lookFor });
  }

  async #pause(): Promise<void> {
    const { signal } = this.#yielded;
    await sleep(systemClock, PAUSE_MS, signal);
    signal.throwIfAborted();
  }
}

function said(event: DemoEvent | undefined, node: string, what: string): DemoEvent | undefined {
  return event?.kind === "said" && event.node === node && event.line.event === what ? event : undefined;
}
