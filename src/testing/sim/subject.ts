/** What the simulator needs of an election: the public face of the library's, or of your own. */
import type { Backend, Leader } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";

export interface SubjectTerm {
  readonly token: bigint;
  readonly signal: AbortSignal;
  readonly held: boolean;
  proclaim(value: string): Promise<void>;
  resign(): Promise<void>;
}

export interface Subject {
  run(work: (term: SubjectTerm) => Promise<void>, options: { signal: AbortSignal }): Promise<void>;
  campaign(options: { signal: AbortSignal }): Promise<SubjectTerm>;
  /** One attempt. Subjects without it are not tried that way. */
  tryCampaign?(options: { signal: AbortSignal }): Promise<SubjectTerm | null>;
  observe(options: { signal: AbortSignal }): AsyncIterable<Leader | null>;
  resign(): Promise<void>;
  /** Hands its term over to a named candidate. Subjects without it resign instead. */
  transfer?(to: string, options: { timeoutMs: number }): Promise<unknown>;
  close(): Promise<void>;
  /** An operator accepts that tokens begin anew. Subjects without it refuse until they are higher again. */
  acceptRegression?(): void;
  on(event: "elected", listener: (event: { term: SubjectTerm }) => void): () => void;
  on(event: "error", listener: (event: { error: unknown }) => void): () => void;
  on(event: "ended", listener: (event: { term: SubjectTerm; end: { reason: string } }) => void): () => void;
}

export interface SubjectOptions {
  readonly name: string;
  readonly id: string;
  readonly backend: Backend;
  readonly clock: Clock;
  readonly ttlMs: number;
  readonly renewDeadlineMs: number | undefined;
  readonly retryMs: number;
  readonly drainMs: number;
  readonly maxTermMs: number | undefined;
  /** These three only of plans with a roster. */
  readonly priority?: number;
  readonly eligible?: boolean;
  readonly minTermMs?: number;
}

export type SubjectFactory = (options: SubjectOptions) => Subject;
