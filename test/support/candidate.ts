/**
 * One candidate in a process of its own, on the public API.
 *
 *   node candidate.js '{"url": "file:///dir", "election": "x", "ttlMs": 2000}'
 *
 * SIGTERM, or the end of standard input, ends it in good order.
 */
import { openElection } from "../../src/index.js";
import type { Term } from "../../src/index.js";
import { raceCandidate } from "../../src/testing/race/index.js";

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

async function main(options: CandidateOptions): Promise<void> {
  const { url, election: name, ttlMs, history, resource } = options;
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
  process.stdin.once("end", () => stop.abort()).resume();
  const election = await openElection({ name, backend: url, ttlMs });
  const held = options.believesSignal ? (term: Term) => !term.signal.aborted : undefined;
  await raceCandidate({ election, signal: stop.signal, history, resource, held });
  process.stdin.destroy();
}

await main(JSON.parse(process.argv[2] ?? "{}") as CandidateOptions);
