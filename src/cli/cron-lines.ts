/** What is said about one run, to machines and to people. */
import type { Run } from "../cron/index.js";

/** One run for machines. Field names are API. */
export function runFields(run: Run): Record<string, unknown> {
  return {
    scheduledAt: new Date(run.at).toISOString(),
    ...(run.until !== undefined && { until: new Date(run.until).toISOString(), count: run.count }),
    attempt: run.attempt,
    state: run.state,
    token: run.token.toString(),
    by: run.by,
    startedAt: new Date(run.startedAt).toISOString(),
    endedAt: run.endedAt === null ? null : new Date(run.endedAt).toISOString(),
    note: run.note,
  };
}

/** One run for people. */
export function runText(run: Run, verb: string): string {
  const range =
    run.until === undefined ? "" : ` to ${new Date(run.until).toISOString()} (${run.count} or more)`;
  const attempt = run.attempt > 1 ? `, attempt ${run.attempt}` : "";
  return `${new Date(run.at).toISOString()}${range} ${verb}${attempt}${run.note === null ? "" : `: ${run.note}`}`;
}
