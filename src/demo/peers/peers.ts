/**
 * Elections with no server: three to seven real processes on this machine that
 * elect among themselves by Raft, by Bully or by both, and a network between them
 * that can be cut anywhere.
 */
import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe } from "../../kit/errors.js";
import { preciseNow } from "../../terminal/lines.js";
import { died, stopped } from "../terms.js";
import type { Terms } from "../terms.js";
import { until } from "../until.js";
import { roleAfter, termsAfter } from "./after.js";
import { Crew } from "./crew.js";
import type { Algorithm } from "../choices.js";
import type { Note, PeersState, PeerView, PeerRole, Size } from "./model.js";
import { leadersOf, NO_ROLE, SIZES, twoAtOnceMs } from "./model.js";
import { noteOf } from "./notes.js";
import type { Telling } from "./notes.js";
import type { Orders, Part, Word } from "./wire.js";
import { freePorts, Wires } from "./wires.js";

const MOST_NOTES = 80;

interface Run {
  readonly names: readonly string[];
  readonly directory: string;
  readonly wires: Wires;
  readonly crew: Crew;
}

export class Peers implements AsyncDisposable {
  readonly #ttlMs: number;
  readonly #algorithms: readonly Algorithm[];
  readonly #listeners = new Set<(note?: Note) => void>();
  readonly #emergency = (): void => this.#destroy();
  readonly #roles = new Map<string, PeerRole>();
  readonly #terms = new Map<Algorithm, Terms>();
  #phase: PeersState["phase"] = "idle";
  #error: string | null = null;
  #notes: readonly Note[] = [];
  #noted = 0;
  #run: Run | undefined;
  #changing: Promise<void> | undefined;
  #disposed = false;

  constructor(options: { readonly ttlMs: number; readonly algorithms: readonly Algorithm[] }) {
    this.#ttlMs = options.ttlMs;
    this.#algorithms = options.algorithms;
  }

  get algorithms(): readonly Algorithm[] {
    return this.#algorithms;
  }

  get state(): PeersState {
    const now = preciseNow();
    const run = this.#run;
    return {
      phase: this.#phase,
      sizes: SIZES,
      contests: this.#algorithms.map((algorithm) => {
        const terms = this.terms(algorithm);
        return {
          algorithm,
          terms: terms.slice(-20),
          twoMs: twoAtOnceMs(terms, now),
          changes: Math.max(0, terms.length - 1),
        };
      }),
      peers: run === undefined ? [] : run.names.map((name) => this.#view(run, name)),
      links: run?.wires.links ?? [],
      notes: this.#notes,
      error: this.#error,
    };
  }

  terms(algorithm: Algorithm): Terms {
    return this.#terms.get(algorithm) ?? [];
  }

  on(listener: (note?: Note) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get busy(): boolean {
    return this.#changing !== undefined;
  }

  /** Waits until something holds. Rejects when that takes too long, or the signal aborts. */
  until<T>(what: string, limitMs: number, signal: AbortSignal, look: () => T | undefined): Promise<T> {
    return until<void, T>(
      (listener) => this.on(() => listener()),
      { what, limitMs, signal },
      () => look(),
    );
  }

  /** So many peers, all new; those that were there are ended first. */
  begin(size: Size): Promise<void> {
    return this.#change(async () => {
      await this.#end();
      if (this.#disposed) return;
      this.#phase = "starting";
      this.#error = null;
      this.#notes = [];
      this.#changed();
      try {
        await this.#start(Array.from({ length: size }, (_, index) => `n${index + 1}`));
        this.#phase = "running";
      } catch (error) {
        await this.#end();
        this.#phase = "failed";
        this.#error = describe(error);
        throw error;
      }
    });
  }

  /** Ends all peers. */
  end(): Promise<void> {
    return this.#change(() => this.#end());
  }

  kill(name: string): void {
    this.#say({ node: name, algorithm: null, text: "is killed", weight: "plain" });
    void this.#run?.crew.kill(name);
  }

  start(name: string): void {
    this.#say({ node: name, algorithm: null, text: "is started", weight: "plain" });
    this.#run?.crew.start(name);
  }

  freeze(name: string): void {
    for (const [algorithm, terms] of this.#terms)
      this.#terms.set(algorithm, stopped(terms, name, preciseNow()));
    this.#run?.crew.freeze(name);
    this.#say({ node: name, algorithm: null, text: "is frozen", weight: "plain" });
  }

  thaw(name: string): void {
    this.#run?.crew.thaw(name);
    this.#say({ node: name, algorithm: null, text: "wakes up", weight: "plain" });
  }

  /** Kills a peer, takes its disk away and starts it again. */
  wipe(name: string): void {
    this.#say({ node: name, algorithm: null, text: "is killed, and its disk is wiped", weight: "plain" });
    const crew = this.#run?.crew;
    void crew?.wipe(name).then(() => {
      if (this.#run?.crew === crew) this.start(name);
    });
  }

  cut(from: string, to: string, on: boolean): void {
    this.#run?.wires.cut(from, to, on);
    const text = on ? `does not reach ${to} any more` : `reaches ${to} again`;
    this.#say({ node: from, algorithm: null, text, weight: "plain" });
  }

  /** Cuts all links between these and the others, in both directions. */
  split(few: readonly string[]): void {
    const names = this.#run?.names ?? [];
    const many = names.filter((name) => !few.includes(name));
    for (const one of few)
      for (const other of many) {
        this.#run?.wires.cut(one, other, true);
        this.#run?.wires.cut(other, one, true);
      }
    const text = `the network is in two parts: ${few.join(", ")} | ${many.join(", ")}`;
    this.#say({ node: null, algorithm: null, text, weight: "plain" });
  }

  mend(): void {
    for (const { from, to, cut } of this.#run?.wires.links ?? [])
      if (cut) this.#run?.wires.cut(from, to, false);
    this.#say({ node: null, algorithm: null, text: "all links are whole", weight: "plain" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    await this.#changing?.catch(() => {});
    await this.#end();
  }

  async #change(act: () => Promise<void>): Promise<void> {
    if (this.#changing !== undefined) throw new Error("the peers are being started or ended");
    this.#changing = act();
    try {
      await this.#changing;
    } finally {
      this.#changing = undefined;
      this.#changed();
    }
  }

  async #start(names: readonly string[]): Promise<void> {
    process.on("exit", this.#emergency);
    const wires = new Wires(names);
    const directory = await mkdtemp(join(tmpdir(), "conclave-peers-"));
    const parts = new Map<string, Part[]>();
    const crew = new Crew({
      directory,
      orders: (name): Orders => ({
        name,
        ttlMs: this.#ttlMs,
        directory: crew.journal(name),
        parts: parts.get(name) ?? [],
      }),
      heard: (name, word) => this.#heard(name, word),
      died: (name, how) => this.#died(name, how),
      changed: () => this.#changed(),
    });
    this.#run = { names, directory, wires, crew };
    const ports = await freePorts(names.length * this.#algorithms.length);
    for (const algorithm of this.#algorithms) {
      const own = Object.fromEntries(names.map((name) => [name, ports.pop()!]));
      const peers = names.map((name) => `${name}@127.0.0.1:${own[name]}`);
      const dial = await wires.lay(own);
      for (const name of names)
        parts.set(name, [...(parts.get(name) ?? []), { algorithm, peers, dial: dial.get(name) ?? {} }]);
    }
    for (const name of names) crew.start(name);
  }

  async #end(): Promise<void> {
    const run = this.#run;
    if (run === undefined) return;
    this.#phase = "ending";
    this.#changed();
    await run.crew.end();
    run.wires.close();
    await rm(run.directory, { recursive: true, force: true, maxRetries: 5 });
    process.off("exit", this.#emergency);
    this.#run = undefined;
    this.#roles.clear();
    this.#terms.clear();
    this.#phase = "idle";
  }

  #destroy(): void {
    this.#run?.crew.destroy();
    if (this.#run !== undefined) rmSync(this.#run.directory, { recursive: true, force: true, maxRetries: 5 });
  }

  #view({ crew }: Run, name: string): PeerView {
    const roles = Object.fromEntries(
      this.#algorithms.map((algorithm) => [algorithm, this.#role(name, algorithm)]),
    );
    return { name, ...crew.view(name), roles };
  }

  #role(name: string, algorithm: Algorithm): PeerRole {
    return this.#roles.get(`${name} ${algorithm}`) ?? NO_ROLE;
  }

  #heard(name: string, word: Word): void {
    if (word.kind === "ready") return this.#changed();
    const algorithm = word.kind === "ballot" ? "raft" : word.algorithm;
    const before = this.#role(name, algorithm);
    this.#roles.set(`${name} ${algorithm}`, roleAfter(before, word));
    this.#terms.set(algorithm, termsAfter(this.terms(algorithm), name, word));
    const note = noteOf(name, word, before);
    if (note !== undefined) this.#say(note);
    const leaders = leadersOf(this.terms(algorithm), preciseNow());
    if (word.kind === "elected" && leaders.length > 1)
      this.#say({ node: null, algorithm, text: `${leaders.join(" and ")} lead at once`, weight: "bad" });
    if (note === undefined) this.#changed();
  }

  #died(name: string, how: string): void {
    for (const algorithm of this.#algorithms) {
      this.#roles.delete(`${name} ${algorithm}`);
      this.#terms.set(algorithm, died(this.terms(algorithm), name, preciseNow()));
    }
    if (this.#phase === "running")
      this.#say({ node: name, algorithm: null, text: `is dead (${how})`, weight: "plain" });
    else this.#changed();
  }

  #say(telling: Telling): void {
    const note = { id: ++this.#noted, at: preciseNow(), ...telling };
    this.#notes = [...this.#notes, note].slice(-MOST_NOTES);
    this.#changed(note);
  }

  #changed(note?: Note): void {
    for (const listener of this.#listeners) listener(note);
  }
}
