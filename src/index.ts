export type {
  Backend,
  BackendWithRecords,
  CallOptions,
  CampaignOptions,
  Candidacy,
  Claim,
  Entry,
  Extension,
  Guarantees,
  Hold,
  Leader,
  ObserveOptions,
  RecordStore,
  Revocation,
  Session,
  SessionFollower,
  TimingDefaults,
} from "./core/backend.js";
export { readClocks, systemClock } from "./core/clock.js";
export type { Clock, Reading, Timer } from "./core/clock.js";
export { Election } from "./core/election.js";
export type { ElectionOptions } from "./core/options.js";
export { ConclaveError, isConclaveError, NotLeaderError, StaleLeaderError } from "./core/errors.js";
export type { ConclaveErrorOptions, ErrorCode } from "./core/errors.js";
export type { ElectionEvents, EventName, Listener, Logger } from "./core/events.js";
export type { Bearer, Fence, FencedResource, FenceOptions, Guard } from "./core/fence.js";
export type { Stop } from "./core/halt.js";
export { Lock } from "./core/lock.js";
export type { AcquireOptions, LockOptions } from "./core/lock.js";
export type { Term } from "./core/term.js";
export type { EndReason, TermEnd } from "./core/term.js";
export type { Timing, TimingOptions } from "./core/timing.js";
export type { Work } from "./core/work.js";
export { recordBackend } from "./record/backend.js";
export type { RecordBackendOptions } from "./record/backend.js";
export { textLeases } from "./record/codec.js";
export type { LeaseRecord } from "./record/lease.js";
export { memoryBackend } from "./backends/memory/index.js";
export { openBackend, openElection, registerBackend } from "./backends/open.js";
export type { BackendOpener, OpenElectionOptions, OpenOptions, RegisterOptions } from "./backends/open.js";
