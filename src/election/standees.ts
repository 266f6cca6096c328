/** `Election.candidates()`: who stands, by the roster, and who of them leads. */
import { Roster } from "../control/roster.js";
import type { Sighting } from "../control/roster.js";
import { recordsOf } from "../kit/records.js";
import type { Standee } from "../api/term.js";
import type { Following } from "./follower-log.js";

interface Reader {
  read(signal: AbortSignal): Promise<ReadonlyMap<string, Sighting>>;
}

/** Of candidates without a line of their own: those that ask again know who has fallen silent meanwhile. */
const outsiders = new WeakMap<Following, Roster>();

function outsiderOf(of: Following): Roster {
  const known = outsiders.get(of);
  if (known !== undefined) return known;
  const { backend, election, clock, timing } = of;
  const records = recordsOf(backend.records, "candidates()");
  const roster = new Roster({ records, election, clock, attemptMs: timing.attemptMs });
  outsiders.set(of, roster);
  return roster;
}

/** With a line of its own, the candidate knows who has fallen silent; without, its first answer is the record as it is. */
export async function readRoster(
  of: Following,
  member: Reader | undefined,
  signal: AbortSignal,
): Promise<readonly Standee[]> {
  const once = async (): Promise<ReadonlyMap<string, Sighting>> => {
    const roster = outsiderOf(of);
    await roster.look({ signal });
    return roster.living();
  };
  const lines = await (member?.read(signal) ?? once());
  return [...lines]
    .map(([id, { line }]) => {
      const { priority, eligible, leads, since } = line;
      return { candidate: id, priority, eligible, leads, since, self: id === of.candidate };
    })
    .sort((a, b) => b.priority - a.priority || a.since - b.since);
}
