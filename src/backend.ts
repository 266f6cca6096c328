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
export { abortable, boundedCall } from "./core/driver.js";
export type { AbortableOptions, BoundedCall } from "./core/driver.js";
export { ConclaveError, isConclaveError } from "./core/errors.js";
export type { ConclaveErrorOptions, ErrorCode } from "./core/errors.js";
export { recordBackend } from "./record/backend.js";
export type { RecordBackendOptions } from "./record/backend.js";
export { decodeLease, encodeLease, textLeases } from "./record/codec.js";
export type { LeaseRecord } from "./record/lease.js";
export { openBackend, registerBackend } from "./backends/open.js";
export type { BackendOpener, OpenOptions, RegisterOptions } from "./backends/open.js";
