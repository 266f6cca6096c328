/**
 * What a candidate's node holds. Curator and kazoo keep the participant's id
 * there and nothing else; a value that differs from it follows on the next line. So
 * other programs see our candidate's id as the leader's, and we theirs.
 */
import type { Leader } from "../../seam/backend.js";

export function encodeNode(candidate: string, value: string): string {
  return value === candidate ? candidate : `${candidate}\n${value}`;
}

/** `name`: of the node, which stands in for an id if there is none. */
export function leaderFromNode(name: string, data: string, token: bigint): Leader {
  const line = data.indexOf("\n");
  const id = line < 0 ? data : data.slice(0, line);
  return { candidate: id === "" ? name : id, token, value: line < 0 ? data : data.slice(line + 1) };
}
