/** What a candidate does leading: hold it and work, or run a schedule. */
import type { SimClock } from "./clock.js";
import type { Monitor } from "./monitor.js";
import type { TermRecord } from "./term-record.js";
import type { SimProcess } from "./node.js";
import type { Plan } from "./plan.js";
import type { Random } from "./random.js";
import type { FencedResource } from "./resource.js";
import type { Subject, SubjectOptions, SubjectTerm } from "./subject.js";
import type { Misbehaviour } from "./misbehaviour.js";

export interface Workload {
  readonly election: Subject;
  /** How often it may change records of its own within one ttl, at most. */
  readonly updatesPerTtl: number;
  /** Called once, when everyone listens. */
  begin(): void;
  /** Closes the election, and whatever stands on it. */
  close(): Promise<void>;
}

/** What workload needs of the candidate it belongs to. */
export interface WorkloadHost {
  readonly owner: string;
  readonly process: SimProcess;
  readonly plan: Plan;
  readonly monitor: Monitor;
  readonly resource: FencedResource;
  readonly random: Random;
  /** Time as the work sees it: what it leaves behind is not the library's. */
  readonly clock: SimClock;
  readonly misbehaviour: Misbehaviour;
  readonly state: "open" | "closing" | "closed";
  /** Aborts when the candidate closes, at its beginning or at its end. */
  readonly stop: AbortSignal;
  opened(term: SubjectTerm): TermRecord;
}

export type WorkloadFactory = (host: WorkloadHost, subject: SubjectOptions) => Workload;
