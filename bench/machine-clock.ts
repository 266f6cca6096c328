/** Milliseconds by the machine's monotonic clock: unlike `performance.now()`, the same in every process. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
