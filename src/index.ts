export type {
  Backend,
  BackendWithRecords,
  CallOptions,
  CampaignOptions,
  Candidacy,
  Claim,
  Extension,
  Guarantees,
  Hold,
  Leader,
  Listing,
  ObserveOptions,
  Revocation,
  Session,
  SessionFollower,
  TimingDefaults,
} from "./seam/backend.js";
export type { Entry, RecordStore } from "./seam/table.js";
export { readClocks, systemClock } from "./kit/clock.js";
export type { Clock, Reading, Timer } from "./seam/clock.js";
export { Election } from "./election/election.js";
export type { ElectionOptions } from "./api/options.js";
export { ConclaveError, isConclaveError, NotLeaderError, StaleLeaderError } from "./kit/errors.js";
export type { ConclaveErrorOptions, ErrorCode } from "./kit/errors.js";
export type { ElectionEvents, EventName, Listener, Logger } from "./api/events.js";
export type { Bearer, Fence, FencedResource, FenceOptions, Guard } from "./seam/fence.js";
export type { Stop } from "./kit/stop.js";
export { Lock } from "./lock/lock.js";
export type { AcquireOptions, LockOptions } from "./lock/lock.js";
export type { Term } from "./api/term.js";
export type { EndReason, TermEnd } from "./api/term.js";
export type { Timing } from "./law/timing.js";
export type { TimingOptions } from "./api/options.js";
export type { Work } from "./election/work.js";
export { recordBackend } from "./record/backend.js";
export type { RecordBackendOptions } from "./record/backend.js";
export { textLeases } from "./record/codec.js";
export type { LeaseRecord } from "./record/lease.js";
export { memoryBackend } from "./backends/memory/index.js";
export { registerBackend } from "./backends/registry.js";
export type { BackendOpener, RegisterOptions } from "./backends/registry.js";
export { openBackend, openElection } from "./open.js";
export type { OpenElectionOptions } from "./open.js";
export type { OpenOptions } from "./seam/entry.js";
