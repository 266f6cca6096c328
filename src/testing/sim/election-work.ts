/** Work that lasts as long as its term, and behaves well or badly. */
import { onAbort, sleep } from "../../kit/wait.js";
import type { WorkloadHost, Workload } from "./workload.js";
import type { TermRecord } from "./term-record.js";
import type { Subject, SubjectTerm } from "./subject.js";

/** Two beats within a ttl, each tried again after lost races. */
const ROSTER_UPDATES = 15;
/** Values that a leader publishes in a row: each wakes whoever watches. */
export const BURST = 20; // more than the file store keeps

export class ElectionWork implements Workload {
  readonly updatesPerTtl: number;
  readonly #by: WorkloadHost;
  readonly #never = new AbortController().signal;
  #runs = 0;

  constructor(
    host: WorkloadHost,
    readonly election: Subject,
  ) {
    this.#by = host;
    const { roster, faults } = host.plan;
    const bursts = faults.filter(({ kind }) => kind === "burst").length;
    this.updatesPerTtl = (roster === undefined ? 0 : ROSTER_UPDATES) + Math.min(bursts, 2) * BURST;
  }

  begin(): void {
    const { owner, monitor, random, plan } = this.#by;
    const running = random.chance(0.8);
    const style = plan.fickle === true ? this.#waver() : running ? this.#run() : this.#campaign();
    style.catch((error: unknown) =>
      monitor.violate("unhandled", `${owner}: run() rejected: ${String(error)}`),
    );
  }

  close(): Promise<void> {
    return this.election.close();
  }

  async #run(): Promise<void> {
    await this.election.run((term) => this.#work(term), { signal: this.#by.stop });
  }

  async #campaign(): Promise<void> {
    const { stop: signal, clock, plan } = this.#by;
    while (!signal.aborted) {
      try {
        const term = await this.election.campaign({ signal });
        // resign() and close() from outside are the owner's word that such work has stopped: its order is not ours to judge.
        await this.#work(term, "own").catch(() => {});
        await term.resign();
      } catch {
        if (this.#by.state !== "open") return;
        await sleep(clock, plan.ttlMs * 0.2, signal);
      }
    }
  }

  /** Gives campaigns up and begins others with the same election, tries just once, does not wait for its own end. */
  async #waver(): Promise<void> {
    const { stop, clock, plan, random, process, owner, monitor } = this.#by;
    while (!stop.aborted) {
      const attempt = new AbortController();
      const unlink = onAbort(stop, () => attempt.abort());
      const calm = process.node.scheduler.now >= plan.healAtMs;
      const patience = random.next() < 0.5 && !calm ? random.between(0, 0.7) * plan.ttlMs : undefined;
      const timer = patience === undefined ? undefined : clock.after(patience, () => attempt.abort());
      try {
        const once = random.chance(0.3);
        const term = await this.#reach(once, attempt.signal);
        timer?.cancel();
        if (term !== null) {
          await this.#work(term, "own").catch(() => {});
          const leaving = term.resign();
          if (random.chance(0.5)) await leaving;
          else leaving.catch((error: unknown) => monitor.violate("unhandled", `${owner}: ${String(error)}`));
          continue;
        }
      } catch {
        if (this.#by.state !== "open") return;
        if (attempt.signal.aborted && random.chance(0.7)) continue;
      } finally {
        timer?.cancel();
        unlink();
      }
      await sleep(clock, plan.ttlMs * 0.2, stop);
    }
  }

  #reach(once: boolean, signal: AbortSignal): Promise<SubjectTerm | null> {
    const { election } = this;
    return once && election.tryCampaign !== undefined
      ? election.tryCampaign({ signal })
      : election.campaign({ signal });
  }

  async #work(term: SubjectTerm, kind: "running" | "own" = "running"): Promise<void> {
    const { owner, monitor, misbehaviour } = this.#by;
    const record = this.#by.opened(term);
    if (this.#runs > 0)
      monitor.violate("work-overlap", `${owner} began work for ${term.token} before its last work settled`);
    if (this.#by.state === "closed")
      monitor.violate("after-close", `${owner} after close: work for ${term.token} began`);
    this.#runs++;
    record.work = kind;
    monitor.probe(true);
    try {
      await this.#workload(record);
    } finally {
      this.#runs--;
      record.work = "settled";
      misbehaviour.obeyed();
    }
  }

  async #workload(record: TermRecord): Promise<void> {
    const { term } = record;
    const { random, misbehaviour, plan, resource, clock } = this.#by;
    while (!term.signal.aborted || misbehaviour.deaf) {
      await misbehaviour.rest(term.signal, plan.ttlMs * random.between(0.2, 0.6));
      // Some work asks before it acts, some trusts the resource to refuse it.
      if (random.chance(0.3) || term.held) resource.send(record);
      if (misbehaviour.ordered === "throw") throw new Error("the work failed");
      if (misbehaviour.ordered === "return") return;
    }
    if (random.chance(0.5)) await sleep(clock, random.between(0, 0.4) * plan.ttlMs, this.#never);
  }
}
