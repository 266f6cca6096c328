/** The stage: real processes, the resource they write to, and one stream of events about all of it. */
import type { ChildProcess } from "node:child_process";
import { fork } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { systemClock } from "../kit/clock.js";
import { sleep } from "../kit/wait.js";
import { preciseNow } from "../terminal/lines.js";
import type { Line } from "../terminal/lines.js";
import { Ledger } from "./ledger.js";
import type { DemoEvent, DemoState, Signal } from "./model.js";
import { advance, emptyStage } from "./model.js";
import { sendSignal } from "./send-signal.js";
import { until } from "./until.js";
import type { DirectorMessage, WriteRequest } from "./wire.js";
import { isNodeMessage, isObject } from "./wire.js";

const CLI = fileURLToPath(new URL("../cli/main.js", import.meta.url));
const ELECTION = "demo";
const SHUTDOWN_MS = 5_000;

export interface StageOptions {
  readonly names: readonly string[];
  readonly ttlMs: number;
  readonly retryMs: number;
  readonly workEveryMs: number;
}

export type DemoListener = (event: DemoEvent, state: DemoState) => void;

/** `DemoEvent` without `at`, which the stage adds. */
type News = DemoEvent extends infer E ? (E extends DemoEvent ? Omit<E, "at"> : never) : never;

export class Stage implements AsyncDisposable {
  readonly #options: StageOptions;
  readonly #directory: string;
  readonly #ledger = new Ledger();
  readonly #children = new Map<string, ChildProcess>();
  readonly #listeners = new Set<DemoListener>();
  readonly #emergency = (): void => this.#destroy();
  /** Frozen leading: a write of theirs is under way and will come too late. */
  readonly #caught = new Set<string>();
  readonly #leaving = new Set<string>();
  /** Ended on request: not to be started again unasked. */
  readonly #resting = new Set<string>();
  #state: DemoState;
  #numbered: number;

  static async open(options: StageOptions): Promise<Stage> {
    return new Stage(options, await mkdtemp(join(tmpdir(), "conclave-demo-")));
  }

  private constructor(options: StageOptions, directory: string) {
    this.#options = options;
    this.#directory = directory;
    this.#state = emptyStage(options.names);
    this.#numbered = options.names.length;
    // Whatever ends this process short of SIGKILL: nothing is left behind.
    process.on("exit", this.#emergency);
  }

  get state(): DemoState {
    return this.#state;
  }

  get directory(): string {
    return this.#directory;
  }

  on(listener: DemoListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  emit(news: News, at: number = preciseNow()): void {
    const event = { ...news, at } as DemoEvent;
    this.#state = advance(this.#state, event);
    for (const listener of this.#listeners) listener(event, this.#state);
  }

  /** Waits until something holds; looks after every event. Rejects when that takes too long, or the signal aborts. */
  until<T>(
    what: string,
    limitMs: number,
    signal: AbortSignal,
    look: (event?: DemoEvent) => T | undefined,
  ): Promise<T> {
    return until((listener) => this.on(listener), { what, limitMs, signal }, look);
  }

  /** Starts a node as a process of its own. */
  start(name: string): void {
    if (this.#children.has(name)) return;
    this.#resting.delete(name);
    const { ttlMs, retryMs, workEveryMs } = this.#options;
    const args = ["demo-node", ELECTION, "--id", name, "--lock-dir", this.#directory];
    const timing = ["--ttl", `${ttlMs}ms`, "--retry", `${retryMs}ms`, "--work-every", `${workEveryMs}ms`];
    const child = fork(CLI, [...args, ...timing], { stdio: ["ignore", "pipe", "pipe", "ipc"], execArgv: [] });
    this.#children.set(name, child);
    child.on("error", (error) => this.emit({ kind: "note", node: name, text: error.message }));
    // Not "exit": its last lines are still under way then.
    child.on("close", (code, signal) => {
      if (this.#children.get(name) === child) this.#children.delete(name);
      this.#caught.delete(name);
      this.emit({ kind: "exited", node: name, how: signal ?? `exit code ${code}` });
      if (this.#leaving.delete(name)) this.emit({ kind: "removed", node: name });
    });
    child.on("message", (message) => this.#answer(name, child, message));
    const lines = createInterface({ input: child.stdout! });
    lines.on("line", (text) => this.#heard(name, text));
    createInterface({ input: child.stderr! }).on("line", (text) =>
      this.emit({ kind: "note", node: name, text }),
    );
    if (child.pid !== undefined) this.emit({ kind: "started", node: name, pid: child.pid });
  }

  /** A further node, with a name of its own. */
  add(): void {
    const name = `node${++this.#numbered}`;
    this.emit({ kind: "added", node: name });
    this.start(name);
  }

  /** Ends a node gracefully and forgets it. */
  remove(name: string): void {
    this.#resting.add(name);
    const child = this.#children.get(name);
    if (child === undefined) return this.emit({ kind: "removed", node: name });
    this.#leaving.add(name);
    this.emit({ kind: "note", node: name, text: "leaves" });
    void this.#end(child);
  }

  /** Sends a signal. Returns the instant just before. */
  signal(name: string, signal: Signal): number {
    const leads = this.#state.nodes.some((node) => node.name === name && node.state === "leader");
    if (signal === "SIGSTOP" && leads) this.#caught.add(name);
    const at = preciseNow();
    const child = this.#children.get(name);
    if (child !== undefined) sendSignal(child, signal);
    this.emit({ kind: "signalled", node: name, signal }, at);
    return at;
  }

  /** Kills a node that is to stay dead until someone starts it. */
  kill(name: string): void {
    this.#resting.add(name);
    this.signal(name, "SIGKILL");
  }

  /** Whether a node that ended is to be left alone. */
  rests(name: string): boolean {
    return this.#resting.has(name);
  }

  /** Asks the leader to resign. */
  dismiss(name: string): void {
    this.emit({ kind: "dismissed", node: name });
    this.#send(name, { kind: "resign" });
  }

  /** Cuts a node off from the store, or heals that. */
  cut(name: string, on: boolean): void {
    this.emit({ kind: "cut", node: name, on });
    this.#send(name, { kind: "cut", on });
  }

  /** Ends every node, gracefully first, and removes the directory. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#children.values()].map((child) => this.#end(child)));
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 5 });
    process.off("exit", this.#emergency);
  }

  async #end(child: ChildProcess): Promise<void> {
    const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
    sendSignal(child, "SIGTERM");
    sendSignal(child, "SIGCONT"); // one that is frozen must wake up to hear it
    const late = new AbortController();
    void sleep(systemClock, SHUTDOWN_MS, late.signal).then(() => {
      if (!late.signal.aborted) sendSignal(child, "SIGKILL");
    });
    await exited;
    late.abort();
  }

  #send(name: string, message: DirectorMessage): void {
    const child = this.#children.get(name);
    if (child?.connected === true) child.send(message, () => {});
  }

  #destroy(): void {
    for (const child of this.#children.values()) sendSignal(child, "SIGKILL");
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 5 });
  }

  #heard(node: string, text: string): void {
    const line = parseLine(text);
    if (line === undefined) return this.emit({ kind: "note", node, text });
    this.emit({ kind: "said", node, line }, line.at);
    if (line.event !== "ended" || !this.#caught.delete(node)) return;
    // It noticed in time not to begin another write. The one that was under way arrives now.
    if (line.reason === "expired" || line.reason === "revoked") this.#send(node, { kind: "write-late" });
  }

  #answer(node: string, child: ChildProcess, message: unknown): void {
    if (!isNodeMessage(message)) return;
    switch (message.kind) {
      case "write":
        return this.#checkWrite(node, child, message);
      case "lease": {
        const { at, token, remainingMs, marginMs } = message;
        return this.emit({ kind: "lease", node, token, remainingMs, marginMs }, at);
      }
      case "ops":
        return this.emit({ kind: "ops", node, perSecond: message.count });
    }
  }

  #checkWrite(node: string, child: ChildProcess, { id, token, late }: WriteRequest): void {
    const { accepted, highest } = this.#ledger.write(BigInt(token));
    const verdict: DirectorMessage = { kind: "verdict", id, accepted, highest: highest.toString() };
    if (child.connected) child.send(verdict, () => {});
    this.emit({ kind: "write", node, token, accepted, highest: verdict.highest, late });
  }
}

function parseLine(text: string): Line | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isLine(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isLine(value: unknown): value is Line {
  return isObject(value) && typeof value["event"] === "string" && typeof value["at"] === "number";
}
