/**
 * One candidate in a process of its own, on the public API: it stands, leads,
 * probes `term.held` every 2 ms and writes to a resource that checks tokens.
 *
 *   node candidate.js '{"url": "file:///dir", "election": "x", "ttlMs": 2000}'
 *
 * Without `history` every line goes to standard output; with it they go to that
 * file, and only the milestones to standard output. SIGTERM, or the end of
 * standard input, ends it in good order.
 */
import { openSync, writeSync } from "node:fs";
import { openElection } from "../../src/index.js";
import type { Term } from "../../src/index.js";
import { probe } from "../../src/testing/conformance/index.js";
import { ResourceClient } from "./resource.js";

export interface CandidateOptions {
  readonly url: string;
  readonly election: string;
  readonly ttlMs: number;
  readonly history?: string;
  /** Socket of the resource to write to. */
  readonly resource?: string;
  /** Planted bug: believes the signal instead of asking the clock. */
  readonly believesSignal?: boolean;
}

const MILESTONE = /^\{"ev":"(?:hello|leading|stopped|bye)"/;

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

async function main(options: CandidateOptions): Promise<void> {
  const { url, election: name, ttlMs } = options;
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
  process.stdin.once("end", () => stop.abort()).resume();
  const election = await openElection({ name, backend: url, ttlMs });
  const resource =
    options.resource === undefined
      ? undefined
      : await ResourceClient.connect(options.resource, name, election.candidate);
  const work = resource && ((term: Term) => workOn(resource, term));
  const held = options.believesSignal ? (term: Term) => !term.signal.aborted : undefined;
  await probe({
    election,
    write: writer(options.history),
    signal: stop.signal,
    ...(held && { held }),
    ...(work && { work }),
  });
  resource?.close();
  process.stdin.destroy();
}

await main(JSON.parse(process.argv[2] ?? "{}") as CandidateOptions);
