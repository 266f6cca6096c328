/**
 * Prometheus metrics of elections, into your registry or one of their own.
 *
 * `prom-client` is an optional peer: this entry point needs it, the rest of the
 * library does not. The same facts go to `diagnostics_channel` without it.
 */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Election } from "../election/election.js";
import { lastWillGauges } from "./last-will.js";
import type { Term } from "../api/term.js";

export { ScheduleMetrics } from "./schedule.js";
export type { ScheduleMetricsOptions, WatchedRun, WatchedSchedule } from "./schedule.js";

/** Where metrics of elections are registered. */
export interface ElectionMetricsOptions {
  /** Where the metrics are registered. Default: a registry of their own. */
  readonly registry?: Registry | undefined;
}

const LABELS = ["election", "backend"] as const;
type Label = (typeof LABELS)[number];
type Labels = Record<Label, string>;

/** From a quick request to a store on its last legs. */
const LATENCY_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** From flapping to a leader of weeks. */
const TERM_BUCKETS = [1, 5, 15, 60, 300, 900, 3600, 14_400, 86_400, 604_800];

function transfersCounter(registry: Registry): Counter<Label | "result"> {
  return new Counter({
    name: "conclave_transfers_total",
    help: "Terms of this process that were handed to a named candidate, by what was seen (taken, taken-by-other, timeout)",
    labelNames: [...LABELS, "result"],
    registers: [registry],
  });
}

/** Prometheus metrics of elections. */
export class ElectionMetrics {
  readonly registry: Registry;
  readonly #watched = new Map<Election, Labels>();
  readonly #jeopardySince = new Map<Term, number>();
  readonly #leading: Gauge<Label>;
  readonly #terms: Counter<Label | "reason">;
  readonly #termSeconds: Histogram<Label>;
  readonly #renewalSeconds: Histogram<Label>;
  readonly #renewalFailures: Counter<Label>;
  readonly #waitSeconds: Histogram<Label>;
  readonly #jeopardySeconds: Counter<Label>;
  readonly #margin: Gauge<Label>;
  readonly #transfers: Counter<Label | "result">;
  readonly #assurance: Gauge<Label | "exclusion" | "token">;

  constructor(options: ElectionMetricsOptions = {}) {
    this.registry = options.registry ?? new Registry();
    for (const gauge of lastWillGauges()) this.registry.registerMetric(gauge);
    const [registers, labelNames] = [[this.registry], [...LABELS]];
    const watched = this.#watched;
    // Read from the clock at the scrape, like everything that says "leading": a flag could be stale.
    this.#leading = new Gauge({
      name: "conclave_leading",
      help: "1 while this process leads, 0 otherwise",
      labelNames,
      registers,
      collect() {
        // Two candidates of one election in one process share a line: it leads if either does.
        for (const labels of watched.values()) this.set(labels, 0);
        for (const [election, labels] of watched) if (election.leading) this.set(labels, 1);
      },
    });
    this.#terms = new Counter({
      name: "conclave_terms_total",
      help: "Terms of this process that have ended, by reason (resigned, closed, expired, revoked)",
      labelNames: [...LABELS, "reason"],
      registers,
    });
    this.#termSeconds = new Histogram({
      name: "conclave_term_duration_seconds",
      help: "How long terms of this process lasted",
      labelNames,
      registers,
      buckets: TERM_BUCKETS,
    });
    this.#renewalSeconds = new Histogram({
      name: "conclave_renewal_duration_seconds",
      help: "How long renewals took, failed ones included",
      labelNames,
      registers,
      buckets: LATENCY_BUCKETS,
    });
    this.#renewalFailures = new Counter({
      name: "conclave_renewal_failures_total",
      help: "Renewals that were refused or not answered",
      labelNames,
      registers,
    });
    this.#waitSeconds = new Histogram({
      name: "conclave_campaign_wait_seconds",
      help: "How long this process campaigned before it was elected",
      labelNames,
      registers,
      buckets: TERM_BUCKETS,
    });
    this.#jeopardySeconds = new Counter({
      name: "conclave_jeopardy_seconds_total",
      help: "Time as leader during which renewals were failing",
      labelNames,
      registers,
    });
    this.#assurance = new Gauge({
      name: "conclave_backend_guarantees",
      help: "Always 1; its labels say what the backend promises (best-effort exclusion and unfenced tokens need care)",
      labelNames: [...LABELS, "exclusion", "token"],
      registers,
    });
    this.#transfers = transfersCounter(this.registry);
    this.#margin = new Gauge({
      name: "conclave_deadline_margin_seconds",
      help: "Time that was left to act when the last renewal was answered; near 0 means leadership is about to be lost",
      labelNames,
      registers,
    });
  }

  /** Counts what happens in this election from now on. Returns the way to stop. */
  watch(election: Election): () => void {
    const labels: Labels = { election: election.name, backend: election.backend.name };
    this.#watched.set(election, labels);
    const { exclusion, token } = election.backend.guarantees;
    this.#assurance.set({ ...labels, exclusion, token }, 1);
    // From the start, so that a counter that never moved reads 0 and not "no data".
    this.#renewalFailures.inc(labels, 0);
    this.#jeopardySeconds.inc(labels, 0);
    for (const reason of ["resigned", "closed", "expired", "revoked"])
      this.#terms.inc({ ...labels, reason }, 0);
    const offs = [
      election.on("transferred", ({ result }) => this.#transfers.inc({ ...labels, result })),
      election.on("elected", ({ waitedMs }) => this.#waitSeconds.observe(labels, waitedMs / 1000)),
      election.on("renewal", ({ ok, latencyMs, remainingMs }) => {
        this.#renewalSeconds.observe(labels, latencyMs / 1000);
        this.#margin.set(labels, remainingMs / 1000);
        if (!ok) this.#renewalFailures.inc(labels);
      }),
      election.on("jeopardy", ({ term }) => void this.#jeopardySince.set(term, term.lastedMs)),
      election.on("safe", ({ term }) => this.#endJeopardy(term, labels)),
      election.on("ended", ({ term, end }) => {
        this.#endJeopardy(term, labels);
        this.#terms.inc({ ...labels, reason: end.reason });
        this.#termSeconds.observe(labels, term.lastedMs / 1000);
        this.#margin.set(labels, 0);
      }),
    ];
    return () => {
      for (const off of offs) off();
      this.#watched.delete(election);
      for (const term of this.#jeopardySince.keys())
        if (term.candidate === election.candidate) this.#endJeopardy(term, labels);
      this.#leading.remove(labels);
      this.#assurance.remove({ ...labels, exclusion, token });
    };
  }

  #endJeopardy(term: Term, labels: Labels): void {
    const since = this.#jeopardySince.get(term);
    if (since === undefined) return;
    this.#jeopardySince.delete(term);
    this.#jeopardySeconds.inc(labels, Math.max(0, term.lastedMs - since) / 1000);
  }
}
