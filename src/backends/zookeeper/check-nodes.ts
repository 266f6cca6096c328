/**
 * Asks the ensemble whether nodes are still there, by transactions that change
 * nothing. One that fails names the first node that is missing; the others are
 * then read, so that hundreds that were deleted at once do not take hundreds of
 * transactions.
 */
import { ConclaveError } from "../../kit/errors.js";
import type { CallLimits, ZooKeeperConnection } from "./client.js";
import { ERRNO, serverError } from "./client/errors.js";
import type { CandidateNode } from "./candidate-node.js";

/** In one transaction; ZooKeeper takes a little less than 1 MiB. */
const MOST_CHECKS = 1_000;
/** Rounds in which missing nodes are found; whoever deletes faster than that is not waited for. */
const MOST_ROUNDS = 5;

export interface CheckOptions {
  readonly limits: CallLimits;
  /** This node is not there, or may not be read any more. */
  missing(node: CandidateNode, why: string): void;
}

/** Resolves when all nodes that are left were found. Those without a path are left out. */
export async function checkNodes(
  connection: ZooKeeperConnection,
  nodes: readonly CandidateNode[],
  options: CheckOptions,
): Promise<void> {
  const known = nodes.filter(({ path }) => path !== undefined);
  const parts: CandidateNode[][] = [];
  for (let i = 0; i < known.length; i += MOST_CHECKS) parts.push(known.slice(i, i + MOST_CHECKS));
  await Promise.all(parts.map((part) => checkPart(connection, part, options)));
}

async function checkPart(
  connection: ZooKeeperConnection,
  nodes: readonly CandidateNode[],
  options: CheckOptions,
): Promise<void> {
  const { limits, missing } = options;
  let left = nodes;
  for (let round = 0; round < MOST_ROUNDS && left.length > 0; round++) {
    const paths = left.map(({ path }) => path!);
    const failed = await connection.check(paths, limits);
    if (failed === undefined) return;
    const { index, errno } = failed;
    const node = left[index];
    if (node === undefined || (errno !== ERRNO.noNode && errno !== ERRNO.noAuth))
      throw serverError(errno, "multi", "its server");
    missing(node, errno === ERRNO.noNode ? "its node was deleted" : "its node may not be read any more");
    left = await stillThere(
      connection,
      left.filter((other) => other !== node),
      options,
    );
  }
  if (left.length > 0)
    throw new ConclaveError("unavailable", "ZooKeeper's nodes change too fast; asking again");
}

/** What a server reads may be old: it may show a node that is gone, but hides none that is there. */
async function stillThere(
  connection: ZooKeeperConnection,
  nodes: readonly CandidateNode[],
  { limits, missing }: CheckOptions,
): Promise<CandidateNode[]> {
  const stats = await Promise.all(nodes.map(({ path }) => connection.exists(path!, limits)));
  return nodes.filter((node, i) => {
    if (stats[i] === null) missing(node, "its node was deleted");
    return stats[i] !== null;
  });
}
