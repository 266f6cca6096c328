/** Elections among three or five processes themselves, with no server: `conclave/raft`. */
import type { BackendWithRecords } from "../../seam/backend.js";
import type { OpenOptions } from "../../seam/entry.js";
import { RaftBackend } from "./backend.js";
import { parseRaftUrl } from "./options.js";
import type { RaftOptions } from "./options.js";

export type { RaftOptions } from "./options.js";

/**
 * Elections among peers. With `self` this process is one of the voters from the first
 * use on, until the backend is closed; without, it stands and observes and the voters decide.
 */
export function raftBackend(options: RaftOptions): BackendWithRecords {
  return new RaftBackend(options);
}

/** Opens `raft://n1@host:port,n2@host:port,n3@host:port?self=n1&dir=…&key-file=…`. A voter votes from here on, unless it is a visitor. */
export async function openRaft(url: string, options: OpenOptions = {}): Promise<BackendWithRecords> {
  const { self, dir, bind, ...others } = parseRaftUrl(url);
  const backend = new RaftBackend(options.visitor === true ? others : { ...others, self, dir, bind });
  await backend.start();
  return backend;
}
