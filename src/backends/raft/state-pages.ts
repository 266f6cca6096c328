/** The state of a voter, which may be long, goes in pages to a voter that begins without a journal. */
import type { StartRecord } from "./journal-records.js";
import type { Told } from "./join.js";
import type { StateAnswer, StateRequest } from "./node-messages.js";
import type { Peering } from "./peering.js";
import type { Acceptor } from "./register.js";
import type { Voter } from "./voter.js";

/** Names and numbers in one page, roughly in bytes. */
const PAGE_BYTES = 32_000;

/** What a voter tells of itself. */
export interface ToldState {
  readonly birth: string;
  /** `undefined`: it has not begun. */
  readonly past:
    | { readonly voter: Voter; readonly acceptor: Acceptor; readonly start: StartRecord }
    | undefined;
  readonly wall: number;
  /** Why nothing may be concluded from it. */
  readonly unfit: string | undefined;
}

/** All pages of another voter. */
export async function askState(peering: Peering, name: string, limitMs: number): Promise<Told> {
  const all: StateAnswer[] = [];
  for (const part of ["votes", "registers"] as const) {
    let after: string | undefined;
    do {
      const answer = await peering.ask(name, { kind: "state", part, after }, limitMs);
      if (answer.kind !== "state") throw new Error(`voter "${name}" answered something else`);
      if (answer.unfit !== undefined) throw new Error(`voter "${name}": ${answer.unfit}`);
      all.push(answer);
      after = answer.next;
    } while (after !== undefined);
  }
  const first = all[0]!;
  // Both parts of one life: a voter that lost its disk in between told of two.
  if (all.some(({ birth, started }) => birth !== first.birth || started !== first.started))
    throw new Error(`voter "${name}" started meanwhile`);
  return {
    ...first,
    votes: all.flatMap(({ votes }) => votes),
    ballots: all.flatMap(({ ballots }) => ballots),
  };
}

export function statePage(
  { part, after = "" }: StateRequest,
  { birth, past, wall, unfit }: ToldState,
): StateAnswer {
  const votes = pageOf(
    part === "votes" ? (past?.voter.records() ?? []) : [],
    ({ election }) => election,
    after,
  );
  const registers = pageOf(part === "votes" ? [] : (past?.acceptor.records() ?? []), ({ key }) => key, after);
  const next = votes.next ?? registers.next;
  return {
    kind: "state",
    birth,
    started: past !== undefined,
    births: past?.start.births ?? [],
    wall,
    seed: past?.start.seed ?? 0n,
    votes: votes.page.map(({ election, term, leaseMs }) => ({ name: election, term, leaseMs })),
    ballots: registers.page.map(({ key, promised }) => ({ name: key, ballot: promised })),
    ...(next !== undefined && { next }),
    ...(unfit !== undefined && { unfit }),
  };
}

function pageOf<T>(
  all: readonly T[],
  nameOf: (item: T) => string,
  after: string,
): { page: readonly T[]; next?: string | undefined } {
  const rest = all.filter((item) => nameOf(item) > after).sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  let bytes = 0;
  const end = rest.findIndex((item) => (bytes += 6 * nameOf(item).length + 80) > PAGE_BYTES);
  return end < 0 ? { page: rest } : { page: rest.slice(0, end), next: nameOf(rest[end - 1]!) };
}
