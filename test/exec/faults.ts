/** Two hosts, one leadership, a command that is deaf and has grandchildren: and one fault after another. */
import { expect } from "vitest";
import { Beats } from "./beats.js";
import type { Span } from "./beats.js";
import { program, until, Wrapped } from "./wrapped.js";

export interface Place {
  readonly name: string;
  /** Words by which a program gets there. */
  readonly through: readonly string[];
  /** Cuts it off from the store, silently. */
  cut?(): void;
  heal?(): void;
}

/** Which command of ours wraps the other. */
export interface Verb {
  readonly words: readonly string[];
  /** Ends when it has lost its leadership, and has to be started again. */
  readonly endsOnLoss: boolean;
}

const EXEC: Verb = { words: ["exec", "x"], endsOnLoss: false };

/** The command that is wrapped. */
export interface Subject {
  /** How many kinds of processes beat when all of it lives. */
  readonly generations: number;
  words(beats: string, host: string): readonly string[];
}

const BEATING: Subject = {
  generations: 3,
  words: (beats, host) => [process.execPath, program("beating"), beats, host, "3"],
};

export type Fault = "cut" | "kill" | "stop";

export interface Outcome {
  readonly terms: number;
  readonly shortestGapMs: number;
  /** From SIGKILL of the wrapper to the last beat of anything it had started. */
  readonly afterKillMs: readonly number[];
}

const PATIENCE_MS = 60_000;

export class Duel {
  readonly #beats: Beats;
  readonly #flags: (index: number) => readonly string[];
  readonly #places: readonly Place[];
  readonly #verb: Verb;
  readonly #subject: Subject;
  readonly #wrappers = new Map<string, Wrapped>();
  readonly #afterKillMs: number[] = [];

  /** `flags`: those of the place with that number. */
  constructor(
    places: readonly Place[],
    path: string,
    flags: (index: number) => readonly string[],
    { verb = EXEC, subject = BEATING }: { verb?: Verb; subject?: Subject } = {},
  ) {
    this.#places = places;
    this.#verb = verb;
    this.#subject = subject;
    this.#beats = new Beats(path);
    this.#flags = flags;
    for (const place of places) this.#start(place);
  }

  async run(faults: readonly Fault[]): Promise<Outcome> {
    for (const fault of faults) {
      const token = await this.#lead();
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 700));
      await this.#strike(fault, token);
      this.#findOverlaps();
    }
    await this.#lead();
    this.#beats.read();
    const shortestGapMs = this.#findOverlaps();
    const terms = this.#beats.spans.size;
    expect(terms).toBeGreaterThan(faults.length);
    return { terms, shortestGapMs, afterKillMs: this.#afterKillMs };
  }

  #findOverlaps(): number {
    const { overlaps, shortestGapMs } = this.#beats.findOverlaps();
    const told = overlaps.map(
      ({ a, b, ms }) => `${a.host} ${a.token} (${late(a, b)}) and ${b.host} ${b.token}: ${ms.toFixed(1)} ms`,
    );
    expect(told).toEqual([]);
    return shortestGapMs;
  }

  /** Waits until the whole tree of one command beats. */
  async #lead(notOn?: string): Promise<string> {
    let token: string | undefined;
    await until(() => {
      const span = this.#beats.living(this.#subject.generations);
      if (span !== undefined && span.host !== notOn) token = span.token;
      return token !== undefined;
    }, PATIENCE_MS);
    return token!;
  }

  async #strike(fault: Fault, token: string): Promise<void> {
    const span = this.#beats.spans.get(token)!;
    const place = this.#places.find(({ name }) => name === span.host)!;
    const wrapper = this.#wrappers.get(place.name)!;
    if (fault === "cut") {
      place.cut!();
      await this.#lead(place.name);
      place.heal!();
    } else if (fault === "stop") {
      wrapper.kill("SIGSTOP");
      await this.#lead(place.name);
      wrapper.kill("SIGCONT");
      if (!this.#verb.endsOnLoss) return;
      await wrapper.exit;
      this.#start(place);
    } else {
      const at = process.hrtime.bigint();
      wrapper.kill("SIGKILL");
      await wrapper.exit;
      await this.#lead(place.name);
      this.#afterKillMs.push(Number(span.last - at) / 1e6);
      this.#start(place);
    }
  }

  #start(place: Place): void {
    const { name, through } = place;
    const flags = this.#flags(this.#places.indexOf(place));
    const command = ["--", ...this.#subject.words(this.#beats.path, name)];
    this.#wrappers.set(
      name,
      new Wrapped(["--id", name, ...flags, ...command], { through, verb: this.#verb.words }),
    );
  }
}

/** Which of its processes lived too long. */
function late(a: Span, b: Span): string {
  return [...a.generations].flatMap(([name, at]) => (at >= b.first ? [name] : [])).join(", ");
}

/** Mixed, so that each kind of fault meets what the others leave behind. */
export function mixed(counts: Readonly<Partial<Record<Fault, number>>>): Fault[] {
  const all = (Object.entries(counts) as [Fault, number][]).flatMap(([fault, n]) =>
    Array.from({ length: n }, () => fault),
  );
  return all
    .map((fault) => ({ fault, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ fault }) => fault);
}
