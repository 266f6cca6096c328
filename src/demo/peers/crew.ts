/** The peers as processes: started, struck, their disks wiped, and in the end all ended. */
import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../kit/clock.js";
import { sleep } from "../../kit/wait.js";
import type { PeerView } from "./model.js";
import { isWord } from "./wire.js";
import type { Orders, Word } from "./wire.js";

const PROGRAM = fileURLToPath(new URL("peer.js", import.meta.url));
const SHUTDOWN_MS = 3_000;

interface Member {
  readonly child: ChildProcess;
  readonly gone: Promise<void>;
  state: Exclude<PeerView["state"], "dead">;
  /** What it complained of last. */
  complaint: string;
}

export interface CrewOptions {
  readonly directory: string;
  readonly orders: (name: string) => Orders;
  readonly heard: (name: string, word: Word) => void;
  readonly died: (name: string, how: string) => void;
  readonly changed: () => void;
}

export class Crew {
  readonly #options: CrewOptions;
  readonly #members = new Map<string, Member>();

  constructor(options: CrewOptions) {
    this.#options = options;
  }

  view(name: string): Pick<PeerView, "state" | "pid"> {
    const member = this.#members.get(name);
    return { state: member?.state ?? "dead", pid: member?.child.pid ?? null };
  }

  /** Where a peer keeps its journal. */
  journal(name: string): string {
    return join(this.#options.directory, name);
  }

  start(name: string): void {
    if (this.#members.has(name)) return;
    const child = fork(PROGRAM, [], { stdio: ["ignore", "ignore", "pipe", "ipc"], execArgv: [] });
    const gone = new Promise<void>((resolve) => child.once("close", () => resolve()));
    const member: Member = { child, gone, state: "starting", complaint: "" };
    this.#members.set(name, member);
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (member.complaint = text.trim()));
    child.on("error", (error) => (member.complaint = error.message));
    child.on("message", (word) => {
      if (!isWord(word) || this.#members.get(name) !== member) return;
      if (word.kind === "ready") {
        child.send(this.#options.orders(name), () => {});
        if (member.state === "starting") member.state = "up";
      }
      this.#options.heard(name, word);
    });
    child.on("close", (code, signal) => {
      if (this.#members.get(name) === member) this.#members.delete(name);
      const how = signal ?? `exit code ${code}`;
      this.#options.died(name, member.complaint === "" ? how : `${how}: ${member.complaint}`);
    });
    this.#options.changed();
  }

  /** Returns when it is dead. */
  async kill(name: string): Promise<void> {
    const member = this.#members.get(name);
    member?.child.kill("SIGKILL");
    await member?.gone;
  }

  freeze(name: string): void {
    this.#signal(name, "SIGSTOP", "frozen");
  }

  thaw(name: string): void {
    this.#signal(name, "SIGCONT", "up");
  }

  async wipe(name: string): Promise<void> {
    await this.kill(name);
    await rm(this.journal(name), { recursive: true, force: true, maxRetries: 5 });
  }

  /** Ends them all, gracefully first. */
  async end(): Promise<void> {
    const members = [...this.#members.values()];
    for (const signal of ["SIGTERM", "SIGCONT"] as const) for (const { child } of members) child.kill(signal);
    const late = new AbortController();
    void sleep(systemClock, SHUTDOWN_MS, late.signal).then(() => {
      if (!late.signal.aborted) this.destroy();
    });
    await Promise.all(members.map(({ gone }) => gone));
    late.abort();
  }

  /** Kills them all, where nothing can be waited for. */
  destroy(): void {
    for (const { child } of this.#members.values()) child.kill("SIGKILL");
  }

  #signal(name: string, signal: NodeJS.Signals, state: "frozen" | "up"): void {
    const member = this.#members.get(name);
    if (member === undefined) return;
    member.child.kill(signal);
    member.state = state;
    this.#options.changed();
  }
}
