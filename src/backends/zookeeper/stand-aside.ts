/**
 * Priority in the queue, by the rules of ADR 060: a candidate whose turn has come
 * gives its node up and joins again, once at each vacancy, if somebody stands
 * behind it, and not if the leader that has gone asked for it by name.
 */
import { type InQueue, namesOf, noteIn } from "./clear-the-way.js";
import type { Change } from "./client.js";
import { ERRNO, isErrno } from "./client/errors.js";
import { makeParents } from "./parents.js";
import { childName, parentOf } from "./paths.js";

/** What a candidate remembers of the vacancies at which it stood aside. */
export interface Stance {
  /** The last one, by the name of the first node that was given up. */
  vacancy: string | undefined;
}

const MOST_ATTEMPTS = 3;

/**
 * Called by a candidate that is first; `predecessor`: the name of the node that was before it.
 * `"changed"`: it is not, or its node is gone: it has to look again.
 */
export async function standAside(
  queue: InQueue,
  predecessor: string,
  stance: Stance,
): Promise<"left" | "leads" | "changed"> {
  const { connection, node, paths, layout, limits } = queue;
  const turn = paths.turn(node.election);
  if (node.heirOf?.has(predecessor) === true || (await isNamed(queue, predecessor))) return "leads";
  for (let attempt = 0; attempt < MOST_ATTEMPTS && node.path !== undefined; attempt++) {
    const own = childName(node.path);
    const [all, chain] = await Promise.all([namesOf(queue), connection.getData(turn, limits)]);
    const next = all[1];
    if (all[0] !== own) return "changed";
    if (next === undefined) return "leads";
    const [vacancy, given] = chain?.data.split(" ") ?? [];
    // Whoever gave its node up last was just before us: nobody has led since.
    const present = given === predecessor && vacancy !== undefined ? vacancy : own;
    if (present === stance.vacancy) return "leads";
    const data = `${present} ${own}`;
    const note: Change =
      chain === null
        ? { kind: "create", path: turn, data }
        : { kind: "write", path: turn, data, version: chain.stat.version };
    const behind: Change = { kind: "check", path: `${node.parent}/${next}` };
    const failed = await connection.commit([behind, { kind: "remove", path: node.path }, note], limits);
    if (failed === undefined) {
      stance.vacancy = present;
      return "left";
    }
    if (failed.errno === ERRNO.noNode && failed.index === 2 && chain === null)
      await makeParents(connection, paths, parentOf(turn), layout.containers, limits);
  }
  return "leads";
}

/** Whether the leader that has gone left a note for us. */
async function isNamed({ connection, node, paths, limits }: InQueue, leader: string): Promise<boolean> {
  try {
    const note = noteIn((await connection.getData(paths.heir(node.election), limits))?.data ?? "");
    return note?.leader === leader && `${node.parent}/${note.heir}` === node.path;
  } catch (error) {
    if (isErrno(error, ERRNO.noAuth)) return false;
    throw error;
  }
}
