/** Which elections there are: nodes with candidates below them. */
import { listing, MOST_LISTED } from "../../kit/listing.js";
import type { Listing } from "../../seam/backend.js";
import type { CallLimits, ZooKeeperConnection } from "./client.js";
import { ERRNO, isErrno } from "./client/errors.js";
import type { Layout } from "./layouts.js";
import { assertRoot } from "./parents.js";
import type { Paths } from "./paths.js";

/** Requests under way at a time. */
const AT_ONCE = 100;

export async function listElections(
  connection: ZooKeeperConnection,
  paths: Paths,
  layout: Layout,
  limits: CallLimits,
): Promise<Listing> {
  await assertRoot(connection, paths.root, limits);
  const names: string[] = [];
  const children = (await childrenOf(connection, paths.root === "" ? "/" : paths.root, limits)) ?? [];
  let queue = children.filter((child) => paths.isPublic(child)).map((child) => `${paths.root}/${child}`);
  let looked = 0;
  while (queue.length > 0 && looked < MOST_LISTED) {
    const nodes = queue.slice(0, AT_ONCE);
    queue = queue.slice(AT_ONCE);
    looked += nodes.length;
    const below = await Promise.all(nodes.map((node) => childrenOf(connection, node, limits)));
    for (const [i, found] of below.entries()) {
      const node = nodes[i]!;
      const name = paths.nameOf(node);
      if (found?.some((child) => layout.pattern.test(child)) === true && name !== undefined) names.push(name);
      for (const child of found ?? []) if (!layout.pattern.test(child)) queue.push(`${node}/${child}`);
    }
  }
  return listing(names, queue.length === 0);
}

/** What may not be read has no elections for us. */
async function childrenOf(
  connection: ZooKeeperConnection,
  path: string,
  limits: CallLimits,
): Promise<readonly string[] | null> {
  try {
    return await connection.getChildren(path, limits);
  } catch (error) {
    if (isErrno(error, ERRNO.noAuth)) return null;
    throw error;
  }
}
