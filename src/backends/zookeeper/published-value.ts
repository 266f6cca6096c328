/**
 * What a leader publishes beside Curator's LeaderLatch. A LeaderLatch reacts to
 * the deletion of the node before it, and to nothing else: any other event there
 * uses up its watch, and it never learns that its turn has come. So the leader's
 * node is not written to; the value is in a node of its own, which says whose it is.
 */
import type { Leader } from "../../seam/backend.js";
import type { CandidateNode } from "./candidate-node.js";
import type { CallLimits, Change, ZooKeeperConnection } from "./client.js";
import { ERRNO, isErrno } from "./client/errors.js";
import type { Layout } from "./layouts.js";
import { makeParents } from "./parents.js";
import { childName, parentOf, type Paths } from "./paths.js";

const MOST_ATTEMPTS = 4;

export interface ValueParts {
  readonly node: CandidateNode;
  readonly layout: Layout;
  readonly paths: Paths;
}

export class PublishedValue {
  readonly #parts: ValueParts;
  /** Version of the node that this leader has made for its value. */
  #version: number | undefined;

  constructor(parts: ValueParts) {
    this.#parts = parts;
  }

  /** `"lost"`: the leader's own node is gone. `"refused"`: there is no place for it. */
  async write(
    connection: ZooKeeperConnection,
    value: string,
    limits: CallLimits,
  ): Promise<"written" | "lost" | "refused"> {
    const { node, layout, paths } = this.#parts;
    const path = paths.value(node.election);
    const own: Change = { kind: "check", path: node.path! };
    const data = `${childName(node.path!)}\n${value}`;
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const version = this.#version;
      const change: Change =
        version === undefined ? { kind: "create", path, data } : { kind: "write", path, data, version };
      this.#version = undefined; // without an answer it is not known
      const failed = await connection.commit([own, change], limits);
      if (failed === undefined) {
        this.#version = version === undefined ? 0 : version + 1;
        return "written";
      }
      if (failed.index === 0 && failed.errno === ERRNO.noNode) return "lost";
      if (failed.errno === ERRNO.noAuth) return "refused";
      // Of an earlier leader, or of a write of ours that was not answered.
      if (failed.errno === ERRNO.nodeExists) await connection.commit([own, { kind: "remove", path }], limits);
      else if (failed.errno === ERRNO.noNode && version === undefined)
        await makeParents(connection, paths, parentOf(path), layout.containers, limits);
    }
    return "refused";
  }
}

/** The leader with what it has published, if it has. */
export async function withPublished(
  { connection, path, name }: { connection: ZooKeeperConnection; path: string; name: string },
  limits: CallLimits,
  wake: () => void,
): Promise<Partial<Leader>> {
  try {
    if ((await connection.exists(path, limits, wake)) === null) return {};
    const data = (await connection.getData(path, limits))?.data ?? "";
    return data.startsWith(`${name}\n`) ? { value: data.slice(name.length + 1) } : {};
  } catch (error) {
    if (isErrno(error, ERRNO.noAuth)) return {};
    throw error;
  }
}
