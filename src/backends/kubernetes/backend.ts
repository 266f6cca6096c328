/** The Kubernetes backend: the record engine over Leases, with a watch for the leader and a label for its pod. */
import type {
  BackendWithRecords,
  CallOptions,
  CampaignOptions,
  Candidacy,
  Claim,
  Forgotten,
  Guarantees,
  Hold,
  Leader,
  Listing,
  ObserveOptions,
} from "../../seam/backend.js";
import type { RecordStore } from "../../seam/table.js";
import type { Clock } from "../../seam/clock.js";
import { invalid } from "../../kit/errors.js";
import { listing, MOST_LISTED } from "../../kit/listing.js";
import { recordBackend } from "../../record/backend.js";
import type { Api } from "./http.js";
import { checkLeaseName, fields } from "./lease.js";
import { Leases } from "./leases.js";
import { LeaseWatchAndLabel } from "./lease-watch-and-label.js";
import { checkLabel } from "./route.js";
import type { PodLabel } from "./route.js";
import { LeaseStore } from "./store.js";
import { isRecordLease, RecordLeases } from "./record-leases.js";
import { TIMING } from "./timing.js";

/** What elections on Kubernetes promise. */
export const GUARANTEES: Guarantees = {
  exclusion: "linearizable",
  expiry: "observer",
  token: "revision",
  succession: "unordered",
  ttl: { minMs: 1000, stepMs: 1000 },
};

/** client-go waits RetryPeriod x [1, 2.2) between two looks. */
const POLL_JITTER = 1.2;
/** A release wakes every follower at once: they answer spread over this. */
const WAKE_JITTER_MS = 20;

export interface KubernetesParts {
  readonly client: Api;
  readonly clock: Clock;
  readonly namespace: string;
  readonly label: PodLabel | undefined;
}

export class KubernetesBackend implements BackendWithRecords {
  readonly name = "kubernetes";
  readonly guarantees = GUARANTEES;
  readonly timing = TIMING;
  readonly records: RecordStore;
  /** Where the Leases are. */
  readonly namespace: string;
  readonly #parts: KubernetesParts;
  readonly #allLeases: Leases;
  readonly #store: LeaseStore;
  readonly #engine: BackendWithRecords;
  /** Of terms that were not released: those of an expired term are stopped when its candidate campaigns again. */
  readonly #watches = new Map<string, LeaseWatchAndLabel>();

  constructor(parts: KubernetesParts) {
    const { client, clock, namespace } = parts;
    const leases = new Leases(client, namespace);
    this.#parts = parts;
    this.#allLeases = leases;
    this.namespace = namespace;
    this.#store = new LeaseStore(clock, leases);
    this.records = new RecordLeases(clock, leases);
    this.#engine = recordBackend({
      name: this.name,
      guarantees: GUARANTEES,
      leases: this.#store,
      records: this.records,
      clock,
      wakeJitterMs: WAKE_JITTER_MS,
      pollJitter: POLL_JITTER,
    });
  }

  async campaign(candidacy: Candidacy, options: CampaignOptions): Promise<Hold | null> {
    const { clock, label } = this.#parts;
    const { election, candidate, attemptMs } = candidacy;
    checkLeaseName(election);
    await this.#leaveLast(candidacy, options.signal);
    const key = `${election}/${candidate}`;
    const left = (): void => {
      if (this.#watches.get(key) === watch) this.#watches.delete(key);
    };
    const watch = new LeaseWatchAndLabel({
      clock,
      store: this.#store,
      election,
      candidate,
      attemptMs,
      label,
      left,
    });
    if (options.wait) watch.watch();
    let hold: Hold | null = null;
    try {
      hold = await this.#engine.campaign(wholeSeconds(candidacy), options);
    } finally {
      if (hold === null) void watch.leave();
    }
    if (hold === null) return null;
    this.#watches.set(key, watch);
    return watch.enter(hold);
  }

  async release(claim: Claim, options: CallOptions): Promise<"released" | "not-held"> {
    return this.#engine.release!(claim, options);
  }

  async forget(election: string, options: CallOptions): Promise<Forgotten> {
    checkLeaseName(election);
    return this.#engine.forget!(election, options);
  }

  /** Every Lease of the namespace that holds no text of ours: by client-go's rules each is an election. */
  async list(options: CallOptions): Promise<Listing> {
    const names: string[] = [];
    let next: string | undefined;
    do {
      const page = await this.#allLeases.list(next, options);
      for (const lease of page.leases) {
        const { name, annotations } = fields(lease["metadata"]);
        if (typeof name === "string" && !isRecordLease(fields(annotations))) names.push(name);
      }
      ({ next } = page);
    } while (next !== undefined && names.length < MOST_LISTED);
    return listing(names, next === undefined);
  }

  observe(election: string, options: ObserveOptions): AsyncIterable<Leader | null> {
    checkLeaseName(election);
    return this.#engine.observe(election, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#watches.values()].map((watch) => watch.leave()));
    this.#watches.clear();
    await this.#engine[Symbol.asyncDispose]();
    this.#parts.client.close();
  }

  /** Before campaigning: ends what an expired term left open, and removes a label left by a crash. */
  async #leaveLast({ election, candidate }: Candidacy, signal: AbortSignal): Promise<void> {
    const key = `${election}/${candidate}`;
    const last = this.#watches.get(key);
    this.#watches.delete(key);
    await last?.leave({ signal });
    const { label } = this.#parts;
    if (label === undefined) return;
    checkLabel(election);
    await label.remove(election, signal);
  }
}

/** A Lease lasts whole seconds: what is asked is rounded up, for the holder and for everyone who waits. */
function wholeSeconds(candidacy: Candidacy): Candidacy {
  if (candidacy.ttlMs < GUARANTEES.ttl.minMs)
    throw invalid(`a Kubernetes Lease lasts at least ${GUARANTEES.ttl.minMs} ms`);
  return { ...candidacy, ttlMs: Math.ceil(candidacy.ttlMs / 1000) * 1000 };
}
