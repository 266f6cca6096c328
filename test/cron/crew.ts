/** Replicas of one schedule as real processes, and what their common log says. */
import { readFileSync, writeFileSync } from "node:fs";
import { readHistory } from "../../src/cron/index.js";
import type { Run } from "../../src/cron/index.js";
import { openBackend } from "../../src/index.js";
import type { Backend } from "../../src/index.js";
import { TestProcess } from "../support/processes.js";

interface Noted {
  readonly event: "begin" | "done" | "missed" | "skipped";
  readonly at: number;
  readonly attempt?: number;
  readonly until?: number;
  readonly pid?: number;
  readonly token?: string;
}

export interface Verdict {
  /** Instants that begin to be accounted for with the first run and end with the last. */
  readonly instants: number;
  readonly duplicates: string[];
  readonly unaccounted: number[];
  readonly notDone: number[];
  readonly reported: number;
  readonly repeats: number;
  readonly unmarked: string[];
}

export class Crew {
  readonly members: TestProcess[] = [];
  readonly #url: string;
  readonly #name: string;
  readonly #mode: string;
  readonly #log: string;
  readonly #backend: Backend;
  /** The store's own history, gathered while it is still there: it is bounded. */
  readonly #history = new Map<number, Run>();

  private constructor(url: string, name: string, mode: string, log: string, backend: Backend) {
    this.#url = url;
    this.#name = name;
    this.#mode = mode;
    this.#log = log;
    this.#backend = backend;
    writeFileSync(log, "");
  }

  static async open(url: string, name: string, mode: string, log: string): Promise<Crew> {
    return new Crew(url, name, mode, log, await openBackend(url));
  }

  async hire(env: NodeJS.ProcessEnv = {}): Promise<TestProcess> {
    const member = new TestProcess(
      "test/cron/programs/replica.ts",
      [this.#url, this.#name, this.#mode, this.#log],
      env,
    );
    this.members.push(member);
    await member.line((line) => line["event"] === "ready");
    return member;
  }

  /** Who was elected and has not ended, as far as it told. */
  leader(): TestProcess | undefined {
    return this.members.find((member) => {
      const last = member.lines.findLast((line) => line["event"] === "elected" || line["event"] === "ended");
      return member.running && last?.["event"] === "elected";
    });
  }

  async gather(): Promise<void> {
    const ledger = await readHistory(this.#backend, this.#name).catch(() => null);
    for (const run of ledger?.runs ?? []) this.#history.set(run.at, run);
  }

  async dismiss(): Promise<void> {
    await Promise.all(this.members.map((member) => member.end()));
    await this.gather();
    await this.#backend[Symbol.asyncDispose]();
  }

  get log(): Noted[] {
    const lines = readFileSync(this.#log, "utf8").split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Noted);
  }

  done(): number {
    return new Set(this.log.filter(({ event }) => event === "done").map(({ at }) => at)).size;
  }

  verdict(): Verdict {
    const { log } = this;
    const begun = log.filter(({ event }) => event === "begin");
    const instants = begun.map(({ at }) => at);
    const [first, last] = [Math.min(...instants), Math.max(...instants)];
    const reported = this.#reported(log);
    const done = new Set(log.filter(({ event }) => event === "done").map(({ at }) => at));
    const all: number[] = [];
    // The last one may have been cut short by the end of the test, with nobody left to tell.
    for (let at = first; at < last; at += 1000) all.push(at);
    const keys = begun.map(({ at, attempt }) => `${at}#${attempt}`);
    return {
      instants: all.length,
      duplicates: repeated(begun.map(({ at }) => `${at}`)),
      unaccounted: all.filter((at) => !done.has(at) && !reported.has(at)),
      notDone: all.filter((at) => !done.has(at)),
      reported: [...reported].filter((at) => at >= first && at <= last).length,
      repeats: begun.filter(({ attempt }) => attempt! > 1).length,
      unmarked: repeated(keys),
    };
  }

  /** Told by an event, or to be read in the store's history. */
  #reported(log: readonly Noted[]): Set<number> {
    const reported = new Set<number>();
    const add = (from: number, until: number): void => {
      for (let at = from; at <= until; at += 1000) reported.add(at);
    };
    for (const { event, at, until } of log)
      if (event === "missed" || event === "skipped") add(at, until ?? at);
    for (const run of this.#history.values())
      if (run.state === "missed" || run.state === "skipped") add(run.at, run.until ?? run.at);
    return reported;
  }
}

function repeated(keys: readonly string[]): string[] {
  return keys.filter((key, index) => keys.indexOf(key) !== index);
}
