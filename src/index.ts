/**
 * Leader election: of many candidates in an election, one leads at a time.
 *
 * Promised, as far as the store keeps its own guarantees (docs/guarantees.md):
 * `term.held` is never true in two processes at once; every term has a higher
 * token than all terms before it; while the store answers and another candidate
 * waits, a leader that dies, hangs or is cut off is replaced after its ttl plus
 * at most one retry, and at once if it resigns.
 *
 * Not promised: that two processes never act at once. A process can be paused
 * between reading `term.held` and acting on it; only the resource can prevent
 * that, by rejecting tokens lower than one it has seen. Nor that work is done
 * exactly once, nor that there is always a leader: when the store cannot be
 * reached, leaders step down. Clocks may be wrong and may jump, but their rates
 * must not differ by more than the margin (15 % of the ttl by default).
 *
 * @packageDocumentation
 */
export type {
  Backend,
  BackendWithRecords,
  CallOptions,
  CampaignOptions,
  Candidacy,
  Claim,
  Eviction,
  Extension,
  Forgotten,
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
export type { Entry, RecordStore } from "./seam/table.js";
export { lastWill } from "./will/index.js";
export type { LastWill, LastWillStatus } from "./will/index.js";
export { readHistory } from "./control/history.js";
export type { PastTerm, TermHistory } from "./control/history.js";
export { readClocks, systemClock } from "./kit/clock.js";
export type { Clock, Reading, Timer } from "./seam/clock.js";
export { Election } from "./election/election.js";
export type { ElectionOptions } from "./api/options.js";
export { ConclaveError, isConclaveError, NotLeaderError, StaleLeaderError } from "./kit/errors.js";
export type { ConclaveErrorOptions, ErrorCode } from "./kit/errors.js";
export type { ElectionEvents, EventName, Listener, LogFields, Logger } from "./api/events.js";
export type { Bearer, Fence, FencedResource, FenceOptions, Guard } from "./seam/fence.js";
export type { Stop } from "./seam/stop.js";
export { both } from "./both/index.js";
export type { BothOptions } from "./both/index.js";
export { Lock } from "./lock/lock.js";
export type { AcquireOptions, LockOptions } from "./lock/lock.js";
export type { Term } from "./api/term.js";
export type { EndReason, Standee, TermEnd, TransferOptions, TransferResult } from "./api/term.js";
export type { Timing } from "./law/timing.js";
export type { TimingOptions } from "./api/options.js";
export type { Work } from "./election/work.js";
export { recordBackend } from "./record/backend.js";
export type { RecordBackendOptions } from "./record/backend-options.js";
export { textLeases } from "./record/codec.js";
export type { LeaseRecord } from "./record/lease.js";
export { memoryBackend } from "./backends/memory/index.js";
export { registerBackend } from "./backends/registry.js";
export type { BackendOpener, RegisterOptions } from "./backends/registry.js";
export { openBackend, openElection, openLock } from "./open.js";
export type { OpenElectionOptions, OpenLockOptions } from "./open.js";
export type { OpenOptions } from "./seam/entry.js";
