/** Handing a term over to a named candidate: the wish is in the releasing write, the result is what is seen after it. */
import { invalid } from "../kit/errors.js";
import { isHeir, LONGEST_HEIR_MS } from "../kit/heir.js";
import { checkCandidate } from "../kit/names.js";
import { bounded, sleep, untilAborted } from "../kit/wait.js";
import type { LinkedSignal } from "../kit/wait.js";
import type { Tenure } from "../law/tenure.js";
import type { Timing } from "../law/timing.js";
import type { TokenFloor } from "../law/token-floor.js";
import type { TransferOptions, TransferResult } from "../api/term.js";
import type { Heir, Leader } from "../seam/backend.js";
import type { Following } from "./follower-log.js";

/** Whose term it is. */
export interface Transferring extends Following {
  readonly floor: Pick<TokenFloor, "seen">;
  /** Whoever knows of pauses, if this candidate follows them; the check throws while there is one. */
  readonly operators: { readonly paused: boolean; checkNotPaused(): void } | undefined;
  stopSignal(signal: AbortSignal | undefined): LinkedSignal;
}

/** Looks at the store while the successor is waited for, where nothing pushes the news. */
const LOOKS = 20;
const LEAST_LOOK_MS = 10;

/** What was asked, checked: nothing has happened yet if it is refused. */
export function heirOf(candidate: string, timing: Timing, to: unknown, options: TransferOptions): Heir {
  const heir = checkCandidate(to);
  if (isHeir(candidate, heir))
    throw invalid(
      `"${heir}" is this candidate itself (${candidate}): name another, by its full id where both have the same readable part`,
    );
  const forMs = options.timeoutMs ?? Math.min(2 * timing.retryMs, LONGEST_HEIR_MS);
  if (typeof forMs !== "number" || !(forMs > 0 && forMs <= LONGEST_HEIR_MS))
    throw invalid(`timeoutMs must be more than 0 and at most ${LONGEST_HEIR_MS} milliseconds, got ${forMs}`);
  return { candidate: heir, forMs };
}

/** Whoever knows who stands. */
interface Knowing {
  /** Throws if nobody of this name stands. */
  checkKnown(to: string): void;
}

/** `Term.transfer`, once it is known to be held. */
export async function transferTerm(
  candidate: Transferring,
  tenure: Tenure,
  { to, ...options }: TransferOptions & { readonly to: unknown },
  member: Knowing | undefined,
): Promise<TransferResult> {
  const heir = heirOf(candidate.candidate, candidate.timing, to, options);
  member?.checkKnown(heir.candidate);
  candidate.operators?.checkNotPaused();
  options.signal?.throwIfAborted();
  const end = (): Promise<unknown> => tenure.endNow("resigned", `handing over to ${heir.candidate}`);
  return handOver(candidate, tenure, heir, end, options.signal);
}

/**
 * Ends a term in favour of this heir, and says who leads after it. The
 * result does not depend on whether the store could name the heir, nor on
 * whether the work stopped in time: it is read from the store.
 */
export function handOver(
  candidate: Transferring,
  tenure: Tenure,
  heir: Heir,
  end: () => Promise<unknown>,
  caller?: AbortSignal,
): Promise<TransferResult> {
  // A term that is ending already names nobody any more; what is seen after it counts all the same.
  if (!tenure.stopping) tenure.heir = heir;
  const ending = end();
  const stop = candidate.stopSignal(caller);
  const observed = observe(candidate, tenure, heir, ending, { caller, stop: stop.signal });
  return candidate.track(observed.finally(stop.unlink));
}

async function observe(
  candidate: Transferring,
  tenure: Tenure,
  heir: Heir,
  ending: Promise<unknown>,
  { caller, stop }: { readonly caller: AbortSignal | undefined; readonly stop: AbortSignal },
): Promise<TransferResult> {
  const { clock, events } = candidate;
  await (caller === undefined ? ending : untilAborted(caller, ending));
  const since = clock.now();
  const leader = await successor(candidate, tenure.token, heir.forMs, stop);
  // A store that goes back behind this has forgotten a leader that we have seen.
  if (leader !== null) candidate.floor.seen(leader.token);
  caller?.throwIfAborted();
  const tookMs = clock.now() - since;
  const result = resultOf(leader, heir);
  const seen = leader === null ? "nobody was seen to lead" : `${leader.candidate} leads`;
  const after = `after ${Math.round(tookMs)} ms`;
  events.log(result === "taken" ? "info" : "warn", `handing over to ${heir.candidate}: ${seen} ${after}`);
  events.emit("transferred", { term: tenure.term, to: heir.candidate, result, tookMs });
  return result;
}

function resultOf(leader: Leader | null, heir: Heir): TransferResult {
  if (leader === null) return "timeout";
  return isHeir(leader.candidate, heir.candidate) ? "taken" : "taken-by-other";
}

/** The first leader after `token`; `null` if none is seen within this time. */
async function successor(
  { election, backend, clock, timing }: Transferring,
  token: bigint,
  withinMs: number,
  signal: AbortSignal,
): Promise<Leader | null> {
  const pollMs = Math.min(timing.retryMs, Math.max(LEAST_LOOK_MS, withinMs / LOOKS));
  const { attemptMs } = timing;
  const look = async (limited: AbortSignal): Promise<Leader | null> => {
    while (!limited.aborted) {
      try {
        for await (const leader of backend.observe(election, { signal: limited, pollMs, attemptMs }))
          if (leader !== null && leader.token > token) return leader;
      } catch {
        // The store cannot be asked at the moment; what it shows later counts as much.
      }
      await sleep(clock, pollMs, limited);
    }
    return null;
  };
  // Out of time, or closed meanwhile: nobody was seen.
  return bounded(clock, withinMs, signal, "waiting for the next leader", look).catch(() => null);
}
