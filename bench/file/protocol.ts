/** What the bench and its candidate processes say to each other. */

export interface Setup {
  readonly kind: "conclave" | "proper-lockfile";
  readonly directory: string;
  readonly ttlMs?: number;
  readonly deadProcessRule?: boolean;
  /** proper-lockfile only: pause between two tries. */
  readonly retryMs?: number;
}

export type Order = "stand" | "resign" | "usage";

interface Reports {
  readonly standing: { readonly atMs: number };
  readonly elected: { readonly atMs: number };
  readonly resigning: { readonly atMs: number };
  readonly usage: { readonly cpuMs: number; readonly rssMiB: number };
}

export type EventName = keyof Reports;
export type Report<E extends EventName = EventName> = { [K in E]: { readonly event: K } & Reports[K] }[E];

/** The machine's monotonic clock: the same in every process of it (Linux, macOS). */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
