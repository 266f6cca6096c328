/** Candidates in processes of their own, ours and client-go's, behind one face. */
import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Server } from "./server.js";

export interface PeerTiming {
  readonly ttlMs: number;
  readonly renewDeadlineMs: number;
  readonly retryMs: number;
}

export interface PeerEvent {
  readonly event: string;
  readonly at: number;
  readonly id?: string;
  readonly token?: string;
  readonly first?: number;
  readonly last?: number;
  readonly op?: string;
  readonly message?: string;
}

/** A stretch of wall-clock time in which a peer said it leads. */
export interface Stretch {
  readonly who: string;
  readonly kind: "conclave" | "client-go";
  readonly from: number;
  to: number;
}

const ROOT = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\.build\/?$/, "");
const CANDIDATE = join(ROOT, ".build/test/kubernetes/programs/candidate.js");

export class Peer {
  readonly events: PeerEvent[] = [];
  readonly #child: ChildProcess;
  readonly #waiting = new Set<() => void>();
  readonly exited: Promise<void>;
  #killedAt: number | undefined;
  /** When it was told to end. */
  #toldAt: number | undefined;

  private constructor(
    readonly kind: "conclave" | "client-go",
    readonly id: string,
    command: string,
    args: readonly string[],
  ) {
    this.#child = spawn(command, args, { stdio: ["ignore", "pipe", "ignore"] });
    this.exited = new Promise((resolve) => this.#child.once("exit", () => resolve()));
    createInterface({ input: this.#child.stdout! }).on("line", (line) => this.#hear(line));
    void this.exited.then(() => this.#wake());
  }

  static conclave(server: Server, name: string, id: string, timing: PeerTiming, candidates = 1): Peer {
    const options = { kubeconfig: server.elector, name, id, ...timing, renewMs: timing.retryMs, candidates };
    return new Peer("conclave", id, process.execPath, [CANDIDATE, JSON.stringify(options)]);
  }

  static clientGo(server: Server, name: string, id: string, timing: PeerTiming, trace = false): Peer {
    if (server.candidate === undefined) throw new Error("no client-go-candidate");
    const args = ["--kubeconfig", server.elector, "--lease", name, "--id", id, "--rejoin"];
    args.push("--lease-duration", `${timing.ttlMs}ms`, "--renew-deadline", `${timing.renewDeadlineMs}ms`);
    args.push("--retry-period", `${timing.retryMs}ms`, ...(trace ? ["--trace"] : []));
    return new Peer("client-go", id, server.candidate, args);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  signal(name: NodeJS.Signals): number {
    const at = Date.now();
    if (name === "SIGKILL") this.#killedAt = at;
    if (name === "SIGTERM") this.#toldAt = at;
    this.#child.kill(name);
    return at;
  }

  /** The first event of this name after `since` (wall milliseconds). */
  async next(event: string, since: number, limitMs: number): Promise<PeerEvent> {
    const until = performance.now() + limitMs;
    for (;;) {
      const found = this.events.find((line) => line.event === event && line.at >= since);
      if (found) return found;
      const left = until - performance.now();
      if (left <= 0 || this.#child.exitCode !== null) {
        throw new Error(
          `${this.id}: no ${event} within ${limitMs} ms; heard ${JSON.stringify(this.events.slice(-5))}`,
        );
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(done, left);
        const waiting = this.#waiting;
        function done(): void {
          clearTimeout(timer);
          waiting.delete(done);
          resolve();
        }
        waiting.add(done);
      });
    }
  }

  /**
   * When it said it led, up to its death if it was killed. client-go that is
   * told to end cancels its work's context, then gives the Lease back, and only
   * then calls OnStoppedLeading: between the last two a successor may already
   * lead. `byContext` ends its stretch where its work was told to stop.
   */
  stretches(byContext = false): Stretch[] {
    if (this.kind === "conclave") return this.#ourStretches();
    const told = byContext ? (this.#toldAt ?? Infinity) : Infinity;
    return this.#goStretches().map((stretch) => ({
      ...stretch,
      to: Math.min(stretch.to, Math.max(told, stretch.from)),
    }));
  }

  async end(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.signal("SIGCONT");
      this.signal("SIGKILL");
    }
    await this.exited;
  }

  #ourStretches(): Stretch[] {
    const told = this.events
      .filter((line) => line.event === "held")
      .map((line) => ({
        who: line.id ?? this.id,
        kind: this.kind,
        from: line.first ?? 0,
        to: line.last ?? 0,
      }));
    const started = this.events.findLast((line) => line.event === "started_leading");
    if (this.#killedAt === undefined || started === undefined || told.some(({ from }) => from >= started.at))
      return told;
    return [...told, { who: this.id, kind: this.kind, from: started.at, to: this.#killedAt }];
  }

  #goStretches(): Stretch[] {
    const stretches: Stretch[] = [];
    for (const { event, at } of this.events) {
      if (event === "started_leading")
        stretches.push({ who: this.id, kind: this.kind, from: at, to: this.#killedAt ?? Infinity });
      const last = stretches.at(-1);
      if (event === "stopped_leading" && last) last.to = at;
    }
    return stretches;
  }

  #hear(line: string): void {
    let parsed: Record<string, unknown>;
    try {
      parsed = JSON.parse(line);
    } catch {
      return;
    }
    const ts = parsed["ts_ns"];
    const at = typeof ts === "string" ? Number(BigInt(ts) / 1000n) / 1000 : Number(parsed["ts"]);
    this.events.push({ ...parsed, event: String(parsed["event"]), at });
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }
}

/** The longest stretch of time in which two peers both said they led. */
export function longestOverlap(
  peers: readonly Peer[],
  byContext = false,
): { readonly ms: number; readonly who: string } {
  const all = peers.flatMap((peer) => peer.stretches(byContext)).toSorted((a, b) => a.from - b.from);
  let longest = { ms: 0, who: "" };
  for (const [index, a] of all.entries()) {
    for (const b of all.slice(index + 1)) {
      const ms = Math.min(a.to, b.to) - Math.max(a.from, b.from);
      if (ms > longest.ms) longest = { ms, who: `${a.who} and ${b.who}` };
    }
  }
  return longest;
}
