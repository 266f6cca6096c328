export type {
  Backend,
  BackendWithRecords,
  CallOptions,
  CampaignOptions,
  Candidacy,
  Claim,
  Eviction,
  Extension,
  Guarantees,
  Heir,
  Hold,
  Leader,
  Listing,
  ObserveOptions,
  ReleaseOptions,
  Session,
  SessionFollower,
  TimingDefaults,
  Wish,
} from "./seam/backend.js";
export type { Stop } from "./seam/stop.js";
export type { Entry, RecordStore } from "./seam/table.js";
export { readClocks, systemClock } from "./kit/clock.js";
export type { Clock, Reading, Timer } from "./seam/clock.js";
export { abortable, boundedCall } from "./kit/driver.js";
export type { AbortableOptions, BoundedCall } from "./kit/driver.js";
export { hybridVersion } from "./kit/hybrid-version.js";
export { ConclaveError, isConclaveError } from "./kit/errors.js";
export type { ConclaveErrorOptions, ErrorCode } from "./kit/errors.js";
export { recordBackend } from "./record/backend.js";
export type { RecordBackendOptions } from "./record/backend-options.js";
export { decodeLease, encodeLease, textLeases } from "./record/codec.js";
export type { LeaseRecord } from "./record/lease.js";
export { registerBackend } from "./backends/registry.js";
export type { BackendOpener, RegisterOptions } from "./backends/registry.js";
export { openBackend } from "./open.js";
export type { OpenOptions } from "./seam/entry.js";
