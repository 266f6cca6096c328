/** What an election is opened with. */
import type { Backend } from "./backend.js";
import type { Clock } from "./clock.js";
import type { Logger } from "./events.js";
import type { TimingOptions } from "./timing.js";

/** What an {@link Election} is opened with. */
export interface ElectionOptions extends TimingOptions {
  /** Name of the contest: candidates with the same name on the same store compete. */
  readonly name: string;
  readonly backend: Backend;
  /** Readable part of the candidate's id; a random part is always added. Default: the host's name. */
  readonly id?: string | undefined;
  /** What observers see while this candidate leads. Default: the candidate's id. */
  readonly value?: string | undefined;
  /** The candidate does not campaign before this says `true`. Asked again after `retryMs`. */
  readonly ready?: ((options: { signal: AbortSignal }) => boolean | Promise<boolean>) | undefined;
  /** Accept a backend without fencing tokens. Default `false`: it is refused. */
  readonly allowUnfenced?: boolean | undefined;
  readonly logger?: Logger | undefined;
  /** Time and chance. For tests. */
  readonly clock?: Clock | undefined;
  /** Whether `close()` closes the backend too. Default `false`: the caller closes what it opened. */
  readonly closeBackend?: boolean | undefined;
}
