/** Elections by the Bully algorithm, for learning and where two leaders do no harm: `conclave/bully`. */
import type { Backend } from "../../seam/backend.js";
import { BullyBackend } from "./backend.js";
import { parseBullyUrl } from "./options.js";
import type { BullyOptions } from "./options.js";
import { quorumBackend } from "./quorum.js";

export type { BullyOptions } from "./options.js";

/**
 * The highest peer that is up leads. There is no quorum: in a partition each side
 * has a leader, so `unsafe: true` is demanded, and elections demand
 * `allowUnfenced: true`. With `quorum: true` it is the Raft backend, and safe.
 */
export function bullyBackend(options: BullyOptions): Backend {
  return options.quorum === true ? quorumBackend(options) : new BullyBackend(options);
}

/** Opens `bully://n1@host:port,n2@host:port?self=n1&unsafe=true&key-file=…`. A peer listens from here on. */
export async function openBully(url: string, options: Partial<BullyOptions> = {}): Promise<Backend> {
  const all = { ...parseBullyUrl(url), ...options };
  if (all.quorum === true) return quorumBackend(all);
  const backend = new BullyBackend(all);
  await backend.start();
  return backend;
}
