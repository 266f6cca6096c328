/** Giving a leadership back in the name of another process: its node is found by the token, and deleted. */
import type { Claim } from "../../seam/backend.js";
import type { CallLimits, ZooKeeperConnection } from "./client.js";
import { candidates, type Layout } from "./layouts.js";
import { leaderFromNode } from "./node-data.js";

export async function releaseClaim(
  connection: ZooKeeperConnection,
  layout: Layout,
  parent: string,
  { candidate, token }: Claim,
  limits: CallLimits,
): Promise<"released" | "not-held"> {
  await connection.check([parent], limits); // a transaction brings the server up to date
  const children = (await connection.getChildren(parent, limits)) ?? [];
  for (const { name } of candidates(layout, parent, children)) {
    const path = `${parent}/${name}`;
    const found = await connection.getData(path, limits);
    // A token is the transaction that created one node, and no other.
    if (found?.stat.czxid !== token) continue;
    if (leaderFromNode(name, found.data, token).candidate !== candidate) return "not-held";
    // The name is never used again: a delete can only meet this very node.
    return (await connection.remove(path, limits)) ? "released" : "not-held";
  }
  return "not-held";
}
