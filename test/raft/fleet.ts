/**
 * Voters as real processes, each on a host and on a small disk of its own, each a
 * candidate as well. Knows at every instant which of them are up and which links
 * are whole: so it can be said afterwards how long nobody led while a majority was up.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { decodeJournal } from "../../src/backends/raft/journal-records.js";
import { eachLine } from "../../src/testing/race/lines.js";
import { ROOT } from "../shape/sources.js";
import { Network } from "./network.js";

export const TTL_MS = 1_000;
const PORT = 7400;
const DISK = "size=4m,mode=700";
const CANDIDATE = join(ROOT, ".build/test/support/candidate.js");

export interface Place {
  /** Of what the candidates write down. */
  readonly history: string;
  /** Of keys and disks. */
  readonly directory: string;
  /** Socket of the resource that leaders write to. */
  readonly resource: string;
}

interface Voter {
  readonly name: string;
  readonly disk: string;
  child: ChildProcess | undefined;
  gone: Promise<void>;
  inc: string | undefined;
  token: bigint | undefined;
  /** It has said hello. */
  there: boolean;
  frozen: boolean;
  /** Its disk is full, or was and its journal has failed. */
  full: boolean;
  /** Its disk was lost, and it has not begun anew. */
  blank: boolean;
}

/** From here on these majorities are up, each written as the names of its voters. */
interface Change {
  readonly at: bigint;
  readonly majorities: readonly string[];
}

export class Fleet {
  readonly election: string;
  readonly changes: Change[] = [];
  readonly #place: Place;
  readonly #network: Network;
  readonly #voters: readonly Voter[];
  readonly #list: string;
  readonly #keyFile: string;
  readonly #listeners = new Set<() => void>();
  /** A voter without a past does not say when it has begun: its journal does. */
  readonly #looking = setInterval(() => this.#noteJoined(), 50);
  #starts = 0;
  #closed: Promise<void> | undefined;

  constructor(election: string, count: number, place: Place) {
    this.election = election;
    this.#place = place;
    this.#network = new Network(count);
    this.#keyFile = join(place.directory, "key");
    writeFileSync(this.#keyFile, "x".repeat(40), { mode: 0o600 });
    const names = Array.from({ length: count }, (_, index) => `n${index + 1}`);
    this.#list = names.map((name, i) => `${name}@${this.#network.hosts[i]!.address}:${PORT}`).join(",");
    this.#voters = names.map((name) => {
      const disk = join(place.directory, election, name);
      mkdirSync(disk, { recursive: true });
      execFileSync("mount", ["-t", "tmpfs", "-o", DISK, "conclave-test", disk]);
      const gone = Promise.resolve();
      const state = { child: undefined, inc: undefined, token: undefined, gone };
      return { name, disk, ...state, there: false, frozen: false, full: false, blank: true };
    });
    for (const index of this.#voters.keys()) this.start(index);
  }

  get count(): number {
    return this.#voters.length;
  }

  /** Number of the voter that last said it leads, and has not said that it stopped. */
  get leader(): number | undefined {
    const leading = [...this.#voters.keys()].filter((index) => this.#voters[index]!.token !== undefined);
    return leading.sort((a, b) => (this.#voters[a]!.token! < this.#voters[b]!.token! ? 1 : -1))[0];
  }

  inc(index: number): string {
    return this.#voters[index]!.inc ?? "nobody";
  }

  /** Waits until something holds; looks whenever a candidate said something, and every now and then. */
  async until(what: string, limitMs: number, so: () => boolean): Promise<void> {
    const end = performance.now() + limitMs;
    while (!so()) {
      if (performance.now() > end) throw new Error(`${this.election}: not so after ${limitMs} ms: ${what}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => look(), 50);
        const look = (): void => {
          clearTimeout(timer);
          this.#listeners.delete(look);
          resolve();
        };
        this.#listeners.add(look);
      });
    }
  }

  start(index: number): void {
    if (this.#closed !== undefined) throw new Error("this fleet is closed");
    const voter = this.#voters[index]!;
    const url = `raft://${this.#list}?self=${voter.name}&dir=${join(voter.disk, "raft")}&key-file=${this.#keyFile}`;
    const history = join(this.#place.history, `${this.election}-${this.#starts++}.jsonl`);
    const { resource } = this.#place;
    const options = { url, election: this.election, ttlMs: TTL_MS, history, resource };
    const [command = "", ...args] = this.#network.hosts[index]!.through;
    const child = spawn(command, [...args, process.execPath, CANDIDATE, JSON.stringify(options)], {
      // That a voter is not reached, and that one does not start on a full disk, is no news here.
      stdio: ["pipe", "pipe", "ignore"],
    });
    Object.assign(voter, { child, there: false, frozen: false });
    voter.gone = new Promise((resolve) => child.once("close", () => resolve()));
    eachLine(child.stdout, (line) => {
      const { ev, inc, token } = JSON.parse(line) as { ev: string; inc: string; token?: string };
      if (voter.child !== child) return;
      voter.inc = inc;
      voter.there = true;
      if (ev === "leading") voter.token = BigInt(token!);
      if (ev === "stopped") voter.token = undefined;
      this.#changed();
    });
  }

  async kill(index: number): Promise<void> {
    const voter = this.#voters[index]!;
    voter.child?.kill("SIGKILL");
    voter.child = undefined;
    voter.token = undefined;
    this.#changed();
    await voter.gone;
  }

  freeze(index: number): void {
    this.#voters[index]!.child?.kill("SIGSTOP");
    this.#voters[index]!.frozen = true;
    this.#changed();
  }

  thaw(index: number): void {
    this.#voters[index]!.child?.kill("SIGCONT");
    this.#voters[index]!.frozen = false;
    this.#changed();
  }

  /** Of a voter that does not run. */
  async wipe(index: number): Promise<void> {
    const voter = this.#voters[index]!;
    for (const name of await readdir(voter.disk))
      await rm(join(voter.disk, name), { recursive: true, force: true });
    voter.blank = true;
    this.#changed();
  }

  fill(index: number): void {
    const voter = this.#voters[index]!;
    voter.full = true;
    try {
      for (;;) appendFileSync(join(voter.disk, "ballast"), Buffer.alloc(64 * 1024));
    } catch {
      // full
    }
    this.#changed();
  }

  /** Of a voter that does not run: one that met the full disk takes no part until it is started again. */
  empty(index: number): void {
    const voter = this.#voters[index]!;
    rmSync(join(voter.disk, "ballast"), { force: true });
    voter.full = false;
    this.#changed();
  }

  /** Cuts these links, each in one direction, or heals them. */
  async cut(pairs: readonly (readonly [number, number])[], on: boolean): Promise<void> {
    // What is cut counts as cut before it is, and as whole when it is.
    const done = this.#network.cut(pairs, on);
    if (on) this.#changed();
    await done;
    if (!on) this.#changed();
  }

  isWhole(index: number): boolean {
    const { there, frozen, full, blank, child } = this.#voters[index]!;
    return child !== undefined && there && !frozen && !full && !blank;
  }

  /** In good order, so that a term reported twice or an event too late is seen as well. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    clearInterval(this.#looking);
    try {
      const running = this.#voters.filter(({ child }) => child !== undefined);
      for (const name of ["SIGCONT", "SIGTERM"] as const) for (const { child } of running) child?.kill(name);
      const late = setTimeout(() => running.forEach(({ child }) => child?.kill("SIGKILL")), 10_000);
      await Promise.all(running.map(({ gone }) => gone));
      clearTimeout(late);
    } finally {
      this.#network.close();
      for (const { disk } of this.#voters) spawnSync("umount", [disk]);
    }
  }

  #noteJoined(): void {
    for (const voter of this.#voters) {
      if (!voter.blank || !voter.there) continue;
      try {
        const { records } = decodeJournal(readFileSync(join(voter.disk, "raft/journal")));
        voter.blank = !records.some(({ kind }) => kind === "start");
      } catch {
        // not there yet
      }
      if (!voter.blank) this.#changed();
    }
  }

  #changed(): void {
    const all = [...this.#voters.keys()];
    const majorities = subsets(all, Math.floor(all.length / 2) + 1).filter((members) =>
      members.every((a) => this.isWhole(a) && members.every((b) => a === b || this.#network.reaches(a, b))),
    );
    this.changes.push({ at: process.hrtime.bigint(), majorities: majorities.map((names) => names.join()) });
    for (const listener of this.#listeners) listener();
  }
}

function subsets(of: readonly number[], size: number): number[][] {
  if (size === 0) return [[]];
  return of.flatMap((first, at) => subsets(of.slice(at + 1), size - 1).map((rest) => [first, ...rest]));
}
