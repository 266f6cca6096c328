/** client-go's own defaults: LeaseDuration, RenewDeadline, RetryPeriod. */
export const TIMING = { ttlMs: 15_000, renewMs: 2_000, renewDeadlineMs: 10_000, retryMs: 2_000 } as const;
