/**
 * Replicas of one schedule, one tick a second, under every fault we know of.
 * What must hold: an instant comes from the timetable; at most once, no instant
 * begins twice; at least once, no attempt has the same number twice and every
 * instant is done; whatever is not done is reported.
 */
import { sleep } from "../../../src/core/waiting.js";
import { decodeLedger } from "../../../src/cron/ledger.js";
import { everyTimetable, Schedule } from "../../../src/cron/index.js";
import type { Mode } from "../../../src/cron/index.js";
import { VirtualStore } from "./store.js";
import { EPOCH, VirtualNode, VirtualTime } from "./time.js";

export type Rule = "timetable" | "twice" | "same-attempt" | "unreported" | "not-done" | "stuck";

export interface SimOutcome {
  readonly seed: number;
  readonly mode: Mode;
  readonly violation: { readonly rule: Rule; readonly detail: string } | undefined;
  readonly runs: number;
  readonly repeats: number;
  readonly reported: number;
  readonly faults: number;
}

const NODES = 3;
const TURMOIL_MS = 40_000;
const CALM_MS = 40_000;
const TTL_MS = 2_000;

interface Begun {
  readonly at: number;
  readonly attempt: number;
}

class World {
  readonly time: VirtualTime;
  readonly store: VirtualStore;
  readonly nodes: VirtualNode[] = [];
  readonly begun: Begun[] = [];
  readonly done = new Set<number>();
  readonly reported = new Set<number>();
  faults = 0;

  constructor(
    readonly seed: number,
    readonly mode: Mode,
  ) {
    this.time = new VirtualTime(seed);
    this.store = new VirtualStore(this.time);
    this.store.wrote = (key, record) => this.#read(key, record);
  }

  async run(): Promise<SimOutcome> {
    for (let n = 0; n < NODES; n++) this.start(n, (this.time.random() - 0.5) * 3_000);
    this.#plan();
    await this.time.run(TURMOIL_MS);
    this.#heal();
    await this.time.run(TURMOIL_MS + CALM_MS);
    const { seed, mode, faults } = this;
    const repeats = this.begun.filter(({ attempt }) => attempt > 1).length;
    return {
      seed,
      mode,
      violation: this.#judge(),
      runs: this.begun.length,
      repeats,
      reported: this.reported.size,
      faults,
    };
  }

  /** A new process on machine `n`: what ran there before is gone. */
  start(n: number, aheadMs: number): void {
    const node = new VirtualNode(this.time, `n${n}`);
    node.aheadMs = aheadMs;
    this.nodes[n] = node;
    const timetable = everyTimetable(1_000);
    const job = async ({
      scheduledAt,
      attempt,
      signal,
    }: {
      scheduledAt: Date;
      attempt: number;
      signal: AbortSignal;
    }): Promise<void> => {
      const at = scheduledAt.getTime();
      this.begun.push({ at, attempt });
      await sleep(node.clock, this.time.random() * 300, signal);
      signal.throwIfAborted();
      this.done.add(at);
    };
    const schedule = new Schedule(
      {
        name: "tick",
        cron: timetable,
        backend: this.store.backend(node),
        clock: node.clock,
        id: node.name,
        ttlMs: TTL_MS,
        mode: this.mode,
        misfire: "all",
        maxCatchUp: 10_000,
        overlap: "parallel",
        keep: 200,
        job,
      },
      timetable,
    );
    void schedule;
  }

  /** Faults, most of them within 50 ms of a tick. */
  #plan(): void {
    const { random } = this.time;
    for (let at = 2_000; at < TURMOIL_MS; at += 500 + random() * 4_000) {
      const near = random() < 0.7 ? Math.round(at / 1_000) * 1_000 + (random() - 0.5) * 100 : at;
      this.time.after(near, () => this.#strike());
    }
  }

  #strike(): void {
    const { random } = this.time;
    const n = Math.floor(random() * NODES);
    const node = this.nodes[n]!;
    const kind = random();
    this.faults++;
    if (kind < 0.3) {
      node.die();
      this.time.after(random() * 3_000, () => {
        if (this.nodes[n] === node) this.start(n, node.aheadMs);
      });
    } else if (kind < 0.7) {
      node.stop();
      this.time.after(random() * 3 * TTL_MS, () => node.resume());
    } else if (kind < 0.85) {
      node.aheadMs = random() < 0.3 ? -3_600_000 : (random() - 0.5) * 20_000;
    } else {
      this.store.cut = true;
      this.time.after(random() * 2 * TTL_MS, () => void (this.store.cut = false));
    }
  }

  #heal(): void {
    this.store.cut = false;
    for (const [n, node] of this.nodes.entries()) {
      node.aheadMs = 0;
      node.resume();
      if (!node.alive) this.start(n, 0);
    }
  }

  #read(key: string, record: string): void {
    if (!key.startsWith("record:cron.")) return;
    const { data } = JSON.parse(record) as { data: string };
    for (const run of decodeLedger(data).runs) {
      if (run.state !== "missed" && run.state !== "skipped") continue;
      for (let at = run.at; at <= (run.until ?? run.at); at += 1_000) this.reported.add(at);
    }
  }

  #judge(): SimOutcome["violation"] {
    const odd = this.begun.find(({ at }) => at % 1_000 !== 0);
    if (odd !== undefined) return { rule: "timetable", detail: `${odd.at} is no instant of the timetable` };
    const keys = this.begun.map(({ at, attempt }) =>
      this.mode === "at-most-once" ? `${at}` : `${at}#${attempt}`,
    );
    const again = keys.find((key, index) => keys.indexOf(key) !== index);
    if (again !== undefined) {
      const rule = this.mode === "at-most-once" ? "twice" : "same-attempt";
      return { rule, detail: `${again} began twice` };
    }
    const first = Math.min(...this.begun.map(({ at }) => at));
    const end = EPOCH + TURMOIL_MS + CALM_MS - 10_000;
    if (this.begun.length === 0 || Math.max(...this.done) < end)
      return { rule: "stuck", detail: "nothing runs any more" };
    for (let at = first; at <= end; at += 1_000) {
      if (this.done.has(at)) continue;
      if (this.mode === "at-least-once") return { rule: "not-done", detail: `${at} was never done` };
      if (!this.reported.has(at))
        return { rule: "unreported", detail: `${at} was neither done nor reported` };
    }
    return undefined;
  }
}

export function simulateCron(seed: number, mode: Mode): Promise<SimOutcome> {
  return new World(seed, mode).run();
}
