/** The five instances as processes: started, struck, started again, and in the end all ended. */
import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../kit/clock.js";
import { sleep } from "../../kit/wait.js";
import type { InstanceView } from "./model.js";
import { sendSignal } from "../send-signal.js";
import { isWord } from "./wire.js";
import type { Orders, Word } from "./wire.js";

const PROGRAM = fileURLToPath(new URL("instance.js", import.meta.url));
/** Whoever is killed is back on the next day. */
const RESTART_MS = 700;

interface Member {
  readonly child: ChildProcess;
  state: InstanceView["state"];
  /** What it complained of last. */
  complaint: string;
}

export interface CrewOptions {
  readonly names: readonly string[];
  readonly heard: (name: string, word: Word) => void;
  /** Something about one of them is not as it was. */
  readonly changed: () => void;
  /** One of them ended, and nobody had killed it. */
  readonly failed: (error: Error) => void;
}

export class Crew {
  readonly #options: CrewOptions;
  readonly #members = new Map<string, Member>();
  readonly #ending = new AbortController();
  #orders: Omit<Orders, "name" | "again"> | undefined;

  constructor(options: CrewOptions) {
    this.#options = options;
    for (const name of options.names) this.#start(name, false);
  }

  get views(): InstanceView[] {
    return this.#options.names.map((name) => ({ name, state: this.#members.get(name)?.state ?? "gone" }));
  }

  get leader(): string | undefined {
    return this.views.find(({ state }) => state === "leader")?.name;
  }

  /** All at once; those started later get them when they are ready. */
  begin(orders: Omit<Orders, "name" | "again">): void {
    this.#orders = orders;
    for (const name of this.#members.keys()) this.#send(name, { ...orders, name, again: false });
  }

  kill(name: string): void {
    const member = this.#members.get(name);
    if (member === undefined) return;
    member.state = "gone";
    sendSignal(member.child, "SIGKILL");
    this.#options.changed();
  }

  freeze(name: string): void {
    const member = this.#members.get(name);
    if (member !== undefined) sendSignal(member.child, "SIGSTOP");
    this.#become(name, "frozen");
  }

  thaw(name: string): void {
    const member = this.#members.get(name);
    if (member?.state !== "frozen") return;
    this.#become(name, "starting");
    sendSignal(member.child, "SIGCONT");
  }

  /** Kills them all; returns when they are dead. */
  async end(): Promise<void> {
    this.#ending.abort();
    const dead = [...this.#members.values()].map(
      ({ child }) => new Promise<void>((resolve) => child.once("close", () => resolve())),
    );
    this.destroy();
    await Promise.all(dead);
  }

  /** The same where nothing can be waited for. */
  destroy(): void {
    for (const { child } of this.#members.values()) sendSignal(child, "SIGKILL");
  }

  #start(name: string, again: boolean): void {
    const child = fork(PROGRAM, [], { stdio: ["ignore", "ignore", "pipe", "ipc"], execArgv: [] });
    const member: Member = { child, state: "starting", complaint: "" };
    this.#members.set(name, member);
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (member.complaint = text.trim()));
    child.on("error", (error) => this.#options.failed(error));
    child.on("message", (word) => {
      if (isWord(word)) this.#heard(name, word, again);
    });
    child.on("close", (code, signal) => void this.#ended(name, member, signal ?? `exit code ${code}`));
    this.#options.changed();
  }

  #heard(name: string, word: Word, again: boolean): void {
    const orders = this.#orders;
    if (word.kind === "ready" && again && orders) this.#send(name, { ...orders, name, again });
    // A word that was under way when it was struck changes nothing.
    const { state } = this.#members.get(name) ?? {};
    if (state !== "gone" && state !== "frozen") {
      if (word.kind === "leads") this.#become(name, "leader");
      if (word.kind === "follows") this.#become(name, "follower");
    }
    this.#options.heard(name, word);
  }

  async #ended(name: string, member: Member, how: string): Promise<void> {
    const { signal } = this.#ending;
    const killed = member.state === "gone";
    this.#members.delete(name);
    if (signal.aborted) return;
    if (!killed) return this.#options.failed(new Error(`${name} ended (${how}): ${member.complaint}`));
    await sleep(systemClock, RESTART_MS, signal);
    if (!signal.aborted) this.#start(name, true);
  }

  #become(name: string, state: InstanceView["state"]): void {
    const member = this.#members.get(name);
    if (member === undefined || member.state === state) return;
    member.state = state;
    this.#options.changed();
  }

  #send(name: string, orders: Orders): void {
    const child = this.#members.get(name)?.child;
    if (child?.connected === true) child.send(orders, () => {});
  }
}
