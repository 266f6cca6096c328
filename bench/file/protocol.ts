/** What the bench and its candidate processes say to each other. */

export interface Setup {
  readonly kind: "conclave" | "proper-lockfile";
  readonly directory: string;
  readonly ttlMs?: number;
  readonly deadProcessRule?: boolean;
  /** proper-lockfile only: pause between two tries. */
  readonly retryMs?: number;
}

/** What a process that measures throughput is told. */
export interface Throughput {
  readonly kind: Setup["kind"];
  readonly directory: string;
  /** Locks, each got and given back over and over. */
  readonly atOnce: number;
  readonly lastMs: number;
  readonly fsync: boolean;
}

/** What it answers. */
export interface Speed {
  readonly perSecond: number;
  /** Processor time of one cycle, all threads. */
  readonly cpuUs: number;
}

export type Order = "stand" | "resign" | "usage";

interface Stamped<E> {
  readonly event: E;
  readonly atMs: number;
}

interface Usage {
  readonly event: "usage";
  readonly cpuMs: number;
  readonly rssMiB: number;
}

export type Report = Stamped<"standing"> | Stamped<"elected"> | Stamped<"resigning"> | Usage;
export type EventName = Report["event"];
export type ReportOf<E extends EventName> = Extract<Report, { readonly event: E }>;

/** The machine's monotonic clock: the same in every process of it (Linux, macOS). */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
