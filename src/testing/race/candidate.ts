/** The program of one candidate of a race, in a process of its own. */
import { openSync, writeSync } from "node:fs";
import type { Election } from "../../election/election.js";
import type { Term } from "../../api/term.js";
import { probe } from "../conformance/probe.js";
import { ResourceClient } from "./resource.js";

/** What a candidate of a race needs: an election of its own, and what the request says. */
export interface RaceCandidateOptions {
  readonly election: Election;
  /** Ends the candidate in good order. */
  readonly signal: AbortSignal;
  /** File to write down what was seen. Default: all of it goes to standard output. */
  readonly history?: string | undefined;
  /** Socket of the resource to write to while leading. Default: none. */
  readonly resource?: string | undefined;
  /** What is asked. Default: `term.held`. */
  readonly held?: ((term: Term) => boolean) | undefined;
}

const MILESTONE = /^\{"ev":"(?:hello|leading|stopped|bye)"/;

/**
 * Stands until the signal aborts, asks `term.held` every two milliseconds and
 * writes to a resource that checks tokens. With `history` all lines go to that
 * file, and only the milestones to standard output, where the race reads them.
 */
export async function raceCandidate(options: RaceCandidateOptions): Promise<void> {
  const { election, signal, held } = options;
  const resource =
    options.resource === undefined
      ? undefined
      : await ResourceClient.connect(options.resource, election.name, election.candidate);
  const work = resource && ((term: Term) => workOn(resource, term));
  try {
    const write = writer(options.history);
    await probe({ election, write, signal, ...(held && { held }), ...(work && { work }) });
  } finally {
    resource?.close();
  }
}

function writer(history: string | undefined): (line: string) => void {
  const file = history === undefined ? undefined : openSync(history, "a", 0o600);
  return (line) => {
    // At once and by the kernel: a kill must not take it back.
    if (file !== undefined) writeSync(file, `${line}\n`);
    if (file === undefined || MILESTONE.test(line)) process.stdout.write(`${line}\n`);
  };
}

/**
 * Read, think, write: without a look at `held` in between. A program this
 * careless is what the token is for.
 */
async function workOn(resource: ResourceClient, term: Term): Promise<void> {
  while (!term.signal.aborted) {
    const value = await resource.read(term.token);
    if (value === null) return;
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
    if (!(await resource.write(term.token, value + 1))) return;
  }
}
