/**
 * `quorum: true`: elections are Raft's, on Raft's public seam. When nobody leads,
 * each peer waits a little before it stands, the highest not at all. So the highest
 * is preferred; that there is one leader does not depend on it.
 */
import { sleep } from "../../kit/wait.js";
import { systemClock } from "../../kit/clock.js";
import { invalid } from "../../kit/errors.js";
import type { BackendWithRecords, CampaignOptions, Candidacy, Hold } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import { raftBackend } from "../raft/index.js";
import type { RaftOptions } from "../raft/index.js";
import { ranked } from "./options.js";
import type { BullyOptions } from "./options.js";

/** A lower peer stands so much later. Raft's own random pauses after a release are shorter. */
const STEP_MS = 60;

export function quorumBackend(options: BullyOptions): BackendWithRecords {
  const { self, unsafe, quorum: _quorum, preempt, ...shared } = options;
  if (unsafe === true) throw invalid("unsafe and quorum contradict each other; give one of them");
  if (preempt === true)
    throw invalid("with quorum a higher peer waits until nobody leads; leave preempt out");
  const names = ranked(options.peers).map(({ name }) => name);
  const below = self === undefined ? 0 : names.length - 1 - names.indexOf(self);
  const env = process.env["CONCLAVE_BULLY_KEY"];
  const key = shared.key ?? (shared.keyFile === undefined ? env : undefined);
  const raft: RaftOptions = {
    ...shared,
    ...(self !== undefined && { self }),
    ...(key !== undefined && { key }),
  };
  return prefer(raftBackend(raft), below * STEP_MS, options.clock ?? systemClock);
}

/** The same backend, whose candidates wait so long before they stand for what nobody leads. */
function prefer(raft: BackendWithRecords, patienceMs: number, clock: Clock): BackendWithRecords {
  const campaign = async (candidacy: Candidacy, options: CampaignOptions): Promise<Hold | null> => {
    const { signal, wait } = options;
    if (!wait || patienceMs === 0) return raft.campaign(candidacy, options);
    const { retryMs: pollMs, attemptMs, election } = candidacy;
    for (;;) {
      for await (const leader of raft.observe(election, { signal, pollMs, attemptMs })) {
        if (leader === null) break;
        options.seen?.(leader.token);
      }
      await sleep(clock, patienceMs, signal);
      signal.throwIfAborted();
      const hold = await raft.campaign(candidacy, { ...options, wait: false });
      if (hold !== null) return hold;
    }
  };
  return {
    name: "bully-quorum",
    guarantees: { ...raft.guarantees, honours: ["heir"] }, // at a vacancy the highest goes first
    timing: raft.timing,
    records: raft.records,
    campaign,
    observe: (election, options) => raft.observe(election, options),
    release: raft.release?.bind(raft),
    list: raft.list?.bind(raft),
    onWarning: (listener) => raft.onWarning?.(listener),
    [Symbol.asyncDispose]: () => raft[Symbol.asyncDispose](),
  };
}
