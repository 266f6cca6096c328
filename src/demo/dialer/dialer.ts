/**
 * The double dialer: five instances of one program shall call a list of
 * customers at 9:00, each customer once. On the first day there is no Conclave;
 * on every further day there is, and the leader falls at a bad moment. The
 * exchange's log shows what became of it.
 */
import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../kit/clock.js";
import { describe } from "../../kit/errors.js";
import { sleep } from "../../kit/wait.js";
import { until } from "../until.js";
import { DAY_MS } from "./calendar.js";
import { Crew } from "./crew.js";
import { Exchange } from "./exchange.js";
import { CUSTOMERS, INSTANCES, MOMENTS, POSSIBLE, sumsOf } from "./model.js";
import type { Day, DialerState, Fall, Moment, Ring } from "./model.js";
import type { Call, Word } from "./wire.js";

/** Until nine o'clock of the first day: time for one of them to be elected. */
const DAWN_MS = 1_500;
/** How long before nine o'clock is just before. */
const BEFORE_MS = 40;
/** Nothing takes as long, beyond the days themselves, on a machine that is fast enough to show anything. */
const PATIENCE_MS = 45_000;

/** After which call the leader falls: connected, but it has not heard of that yet. */
const FALLS_AFTER: Partial<Record<Moment, number>> = {
  "during-calls": 3,
  "before-noting": CUSTOMERS.length,
  frozen: 2,
};

interface Entry {
  readonly at: number;
  readonly moment: Moment | null;
  fall: (Fall & { readonly when: number }) | null;
  settled: boolean;
}

export class Dialer implements AsyncDisposable {
  readonly #listeners = new Set<() => void>();
  readonly #emergency = (): void => this.#destroy();
  /** Ends what is being played. */
  #halt = new AbortController();
  #disposed = false;
  #playing: Promise<void> | undefined;
  #phase: DialerState["phase"] = "idle";
  #error: string | null = null;
  #diary: Entry[] = [];
  #exchange = new Exchange();
  #crew: Crew | undefined;
  #directory: string | undefined;

  get state(): DialerState {
    const { log } = this.#exchange;
    const dated = new Set(this.#diary.map(({ at }) => at));
    return {
      phase: this.#phase,
      moments: POSSIBLE.map((id) => ({ id, label: MOMENTS[id] })),
      customers: CUSTOMERS,
      dayMs: DAY_MS,
      instances: this.#crew?.views ?? INSTANCES.map((name) => ({ name, state: "gone" })),
      days: this.#diary.map((entry) => dayOf(entry, log)),
      log: log.filter(({ list }) => dated.has(list)),
      error: this.#error,
    };
  }

  on(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get busy(): boolean {
    return this.#playing !== undefined;
  }

  /** One day without Conclave, then one for each moment. Rejects if it could not be shown to the end. */
  async play(moments: readonly Moment[]): Promise<void> {
    if (this.#playing !== undefined) throw new Error("the calls of these days are not over yet");
    this.#playing = this.#play(moments);
    try {
      await this.#playing;
      this.#phase = "done";
    } catch (error) {
      this.#phase = "failed";
      this.#error = describe(error);
      throw error;
    } finally {
      this.#playing = undefined;
      this.#changed();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    this.#halt.abort(new Error("the demo ends"));
    await this.#playing?.catch(() => {});
  }

  async #play(moments: readonly Moment[]): Promise<void> {
    if (this.#disposed) throw new Error("the demo ends");
    this.#halt = new AbortController();
    this.#phase = "starting";
    this.#error = null;
    this.#diary = [];
    this.#exchange = new Exchange();
    process.on("exit", this.#emergency);
    try {
      const directory = await mkdtemp(join(tmpdir(), "conclave-dialer-"));
      this.#directory = directory;
      const exchange = await this.#exchange.open();
      await this.#assemble();
      const plain = systemClock.wall() + DAWN_MS;
      this.#diary = [null, ...moments].map((moment, day) => ({
        at: plain + day * DAY_MS,
        moment,
        fall: null,
        settled: false,
      }));
      this.#phase = "running";
      this.#exchange.begins = (call) => this.#begun(call);
      this.#exchange.rings = (ring) => this.#rang(ring);
      for (const entry of this.#diary) if (entry.moment === "before-claim") void this.#strikeBefore(entry);
      this.#crew?.begin({ directory, exchange, customers: CUSTOMERS, plain });
      this.#changed();
      const limitMs = DAWN_MS + this.#diary.length * DAY_MS + PATIENCE_MS;
      await this.#until("every list is called", limitMs, () =>
        this.#diary.every((entry) => this.#over(entry)),
      );
    } finally {
      await this.#clear();
    }
  }

  /** All five are there. */
  async #assemble(): Promise<void> {
    let ready = 0;
    this.#crew = new Crew({
      names: INSTANCES,
      heard: (_, word) => {
        if (word.kind === "ready") ready++;
        else this.#heard(word);
        this.#changed();
      },
      changed: () => this.#changed(),
      failed: (error) => this.#halt.abort(error),
    });
    await this.#until("five instances are started", PATIENCE_MS, () => ready >= INSTANCES.length);
  }

  /** Takes everything down; what is to be shown stays. */
  async #clear(): Promise<void> {
    await this.#crew?.end();
    this.#crew = undefined;
    await this.#exchange.close();
    if (this.#directory !== undefined)
      await rm(this.#directory, { recursive: true, force: true, maxRetries: 5 });
    this.#directory = undefined;
    process.off("exit", this.#emergency);
  }

  #destroy(): void {
    this.#crew?.destroy();
    if (this.#directory !== undefined)
      rmSync(this.#directory, { recursive: true, force: true, maxRetries: 5 });
  }

  #over({ at, moment, settled }: Entry): boolean {
    // Nobody is waited for who fell before he had called his list by the clock.
    if (moment === null) return true;
    // The last act: the frozen leader has woken up, and dialled on.
    return settled && (moment !== "frozen" || sumsOf(this.#exchange.log, at).stale > 0);
  }

  async #strikeBefore(entry: Entry): Promise<void> {
    const { signal } = this.#halt;
    await sleep(systemClock, entry.at - BEFORE_MS - systemClock.wall(), signal);
    const leader = this.#crew?.leader;
    if (!signal.aborted && leader !== undefined) this.#fell(entry, leader);
  }

  #begun({ list, by }: Call): void {
    const entry = this.#entryOf(list);
    if (entry === undefined) return;
    if (entry.moment === "after-claim" && entry.fall === null) return this.#fell(entry, by);
    const { fall } = entry;
    if (fall === null || fall.successor !== null) return;
    entry.fall = { ...fall, successor: by, gapMs: systemClock.now() - fall.when };
    this.#changed();
  }

  #rang(ring: Ring): void {
    const entry = this.#entryOf(ring.list);
    if (entry === undefined) return;
    const { once, more } = sumsOf(this.#exchange.log, entry.at);
    if (entry.moment === null) {
      const calls = this.#exchange.log.filter(({ list }) => list === entry.at).length;
      entry.settled = calls >= CUSTOMERS.length * INSTANCES.length;
    } else if (entry.fall === null && once + more === FALLS_AFTER[entry.moment]) this.#fell(entry, ring.by);
    this.#changed();
  }

  #fell(entry: Entry, by: string): void {
    const afterNineMs = systemClock.wall() - entry.at;
    entry.fall = { by, afterNineMs, successor: null, gapMs: null, when: systemClock.now() };
    if (entry.moment === "frozen") this.#crew?.freeze(by);
    else this.#crew?.kill(by);
  }

  #heard(word: Word): void {
    if (word.kind !== "settled") return;
    const entry = this.#entryOf(word.list);
    if (entry === undefined) return;
    entry.settled = true;
    if (entry.moment === "frozen" && entry.fall !== null) this.#crew?.thaw(entry.fall.by);
  }

  #entryOf(list: number): Entry | undefined {
    return this.#diary.find(({ at }) => at === list);
  }

  async #until(what: string, limitMs: number, holds: () => boolean): Promise<void> {
    await until<void, true>(
      (listener) => this.on(listener),
      { what, limitMs, signal: this.#halt.signal },
      () => holds() || undefined,
    );
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}

function dayOf({ at, moment, fall, settled }: Entry, log: readonly Ring[]): Day {
  if (fall === null) return { at, moment, fall, settled, sums: sumsOf(log, at) };
  const { when: _when, ...told } = fall;
  return { at, moment, fall: told, settled, sums: sumsOf(log, at) };
}
