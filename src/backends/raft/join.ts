/**
 * How a voter without a past comes to take part (ADR 042, "A lost disk"): at the
 * first start of a cluster, or after its disk was lost. Always by the answers of
 * all others; a majority is not enough.
 */
import { ConclaveError } from "../../kit/errors.js";
import type { BirthRecord, StartRecord } from "./journal-records.js";
import type { VoteRecord } from "./messages.js";
import type { StateAnswer } from "./node-messages.js";
import type { RegisterRecord } from "./register.js";

/** Refuses the journal of another voter, and of another cluster. */
export function assertOwn(birth: BirthRecord, self: string, own: { cluster: string; list: string }): void {
  if (birth.self !== self)
    throw new ConclaveError(
      "conflict",
      `the journal belongs to voter "${birth.self}"; give this voter, "${self}", a directory of its own`,
    );
  if (birth.cluster !== own.cluster)
    throw new ConclaveError(
      "conflict",
      `the journal was written with another list of voters than ${own.list}; a list cannot be changed while a cluster runs: start this voter with the old list, or stop all voters, move all directories away and start all with the new one`,
    );
}

/** What a voter begins with. */
export interface Beginning {
  readonly start: StartRecord;
  readonly votes: readonly VoteRecord[];
  readonly registers: readonly RegisterRecord[];
}

/** Everything another voter told, all pages together. */
export type Told = Pick<StateAnswer, "birth" | "started" | "births" | "wall" | "seed" | "votes" | "ballots">;

/** `undefined` = not yet: some have a past and some have none. */
export function beginning(birth: string, wall: number, others: readonly Told[]): Beginning | undefined {
  const seed = others.reduce(
    (most, other) => max(most, max(other.seed, other.started ? 0n : BigInt(Math.floor(other.wall)))),
    others.some(({ started }) => started) ? 0n : BigInt(Math.floor(wall)),
  );
  // This very journal was there, empty, when the others began: it has never voted.
  if (others.every((other) => !other.started || other.births.includes(birth))) {
    const births = [birth, ...others.map((other) => other.birth)].sort();
    return { start: { kind: "start", floor: 0n, seed, births }, votes: [], registers: [] };
  }
  if (!others.every(({ started }) => started)) return undefined;
  const votes = new Map<string, VoteRecord>();
  const registers = new Map<string, RegisterRecord>();
  for (const other of others) {
    for (const { name, term, leaseMs } of other.votes) {
      const known = votes.get(name);
      votes.set(name, {
        election: name,
        term: max(term, known?.term ?? 0n),
        vote: null,
        leader: null,
        leaseMs: Math.max(leaseMs, known?.leaseMs ?? 0),
      });
    }
    for (const { name, ballot } of other.ballots) {
      const promised = max(ballot, registers.get(name)?.promised ?? 0n);
      registers.set(name, { kind: "register", key: name, promised, accepted: null, blank: true });
    }
  }
  const start: StartRecord = { kind: "start", floor: 0n, seed, births: [] };
  return { start, votes: [...votes.values()], registers: [...registers.values()] };
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
