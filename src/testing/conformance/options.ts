/** What a backend's author hands to the suite. */
import type { ChildProcess } from "node:child_process";
import type { Backend } from "../../seam/backend.js";
import type { Faults } from "./faults.js";

/** vitest's `describe` and `test` fit as they are; for node:test wrap them in a line each. */
export interface Runner {
  describe(name: string, body: () => void): void;
  test(name: string, body: () => Promise<void>, timeoutMs: number): void;
  /** Reports a test that is not run. Default: it is only printed. */
  skip?(name: string): void;
}

/** A test that this backend is excused from, and why. Both are printed. */
export interface Skip {
  /** Full name, `group: test`, or a group's name for all of it. */
  readonly test: string;
  readonly reason: string;
}

/** What a child process is asked to be. */
export interface ChildRequest {
  readonly election: string;
  readonly ttlMs: number;
}

export interface ConformanceOptions {
  /** Opens one more backend on the same store, as another process would. Closed by the suite. */
  readonly backend: () => Promise<Backend>;
  readonly runner: Runner;
  readonly faults?: Faults | undefined;
  /**
   * Starts a candidate as a process of its own on the same store, with its
   * standard output piped and its program being `probe` (see there).
   */
  readonly child?: ((request: ChildRequest) => ChildProcess) | undefined;
  readonly skips?: readonly Skip[];
  /** Length of a lease in the tests. Default: the shortest the backend keeps, but at least a second. */
  readonly ttlMs?: number;
  /** Rounds of each race. Default 20. */
  readonly rounds?: number;
  /** How long the suite waits for what must happen soon, on a machine that may be busy. Default 10 seconds. */
  readonly patienceMs?: number;
  /** Where skips and warnings are printed. Default: standard error. */
  readonly print?: (line: string) => void;
}
