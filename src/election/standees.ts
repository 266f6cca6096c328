/** `Election.candidates()`: who stands, by the roster, and who of them leads. */
import { Roster } from "../control/roster.js";
import type { Sighting } from "../control/roster.js";
import { recordsOf } from "../kit/records.js";
import type { Standee } from "../api/term.js";
import type { Following } from "./follower-log.js";

interface Reader {
  read(signal: AbortSignal): Promise<ReadonlyMap<string, Sighting>>;
}

/** With a line of its own, the candidate knows who has fallen silent; without, it takes the record as it is. */
export async function readRoster(
  { backend, election, clock, timing, candidate }: Following,
  member: Reader | undefined,
  signal: AbortSignal,
): Promise<readonly Standee[]> {
  const { attemptMs } = timing;
  const once = async (): Promise<ReadonlyMap<string, Sighting>> => {
    const records = recordsOf(backend.records, "candidates()");
    const roster = new Roster({ records, election, clock, attemptMs });
    await roster.look({ signal });
    return roster.living();
  };
  const lines = await (member?.read(signal) ?? once());
  return [...lines]
    .map(([id, { line }]) => {
      const { priority, eligible, leads, since } = line;
      return { candidate: id, priority, eligible, leads, since, self: id === candidate };
    })
    .sort((a, b) => b.priority - a.priority || a.since - b.since);
}
