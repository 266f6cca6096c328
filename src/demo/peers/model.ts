/** Elections among peers as something to show: plain data, ready for JSON. */
import type { Algorithm } from "../choices.js";
import type { Terms, TermView } from "../terms.js";

/** How many peers there may be: an odd number, as Raft demands. */
export const SIZES = [3, 5, 7] as const;
export type Size = (typeof SIZES)[number];

export function isSize(count: number): count is Size {
  return (SIZES as readonly number[]).includes(count);
}

/** One peer's part in one election. */
export interface PeerRole {
  /** Of its term, if it leads. */
  readonly token: string | null;
  /** When it must stop unless it renews: its own deadline. */
  readonly deadline: number | null;
  /** Whom it takes for the leader. */
  readonly follows: string | null;
  /** Raft: what it has on its disk, and whom it has promised until when. */
  readonly ballot: {
    readonly term: string;
    readonly vote: string | null;
    readonly leader: string | null;
    readonly promised: { readonly to: string; readonly until: number } | null;
    readonly unfit: string | null;
  } | null;
}

type PeerStatus = "starting" | "up" | "frozen" | "dead";

export interface PeerView {
  readonly name: string;
  readonly state: PeerStatus;
  readonly pid: number | null;
  readonly roles: Readonly<Partial<Record<Algorithm, PeerRole>>>;
}

/** The way from one peer to another. */
export interface LinkView {
  readonly from: string;
  readonly to: string;
  readonly cut: boolean;
  /** Pieces of data that went this way so far: the heartbeats, mostly. */
  readonly sent: number;
}

/** Something that happened, for people. */
export interface Note {
  readonly id: number;
  readonly at: number;
  readonly node: string | null;
  readonly algorithm: Algorithm | null;
  readonly text: string;
  /** `bad`: what must not happen; `leader`: a change of leader. */
  readonly weight: "plain" | "leader" | "bad";
}

/** One election by one algorithm. */
export interface Contest {
  readonly algorithm: Algorithm;
  readonly terms: Terms;
  /** How long two of them led at once, in all. */
  readonly twoMs: number;
  /** Changes of leader. */
  readonly changes: number;
}

export interface PeersState {
  readonly phase: "idle" | "starting" | "running" | "ending" | "failed";
  readonly sizes: readonly number[];
  readonly contests: readonly Contest[];
  readonly peers: readonly PeerView[];
  readonly links: readonly LinkView[];
  /** Newest last. */
  readonly notes: readonly Note[];
  readonly error: string | null;
}

export const NO_ROLE: PeerRole = { token: null, deadline: null, follows: null, ballot: null };

/** When a term was over, or what is the longest it can last as far as is known. */
function endOf({ from, to, deadline }: TermView, now: number): number {
  return Math.max(from, to ?? Math.min(now, deadline ?? now));
}

/** Who leads now: not more than one, unless it is Bully and the network is in two parts. */
export function leadersOf(terms: Terms, now: number): string[] {
  const leading = terms.filter(({ to, deadline }) => to === undefined && (deadline ?? now + 1) > now);
  return [...new Set(leading.map(({ node }) => node))];
}

/** How long more than one peer led. */
export function twoAtOnceMs(terms: Terms, now: number): number {
  const edges = terms
    .flatMap((term) => [
      { at: term.from, step: 1 },
      { at: endOf(term, now), step: -1 },
    ])
    // Whoever ends at the very instant at which another begins has not led with it.
    .sort((a, b) => a.at - b.at || a.step - b.step);
  let leading = 0;
  let since = 0;
  let total = 0;
  for (const { at, step } of edges) {
    if (leading > 1) total += at - since;
    leading += step;
    since = at;
  }
  return total;
}
