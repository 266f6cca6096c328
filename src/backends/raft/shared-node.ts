/** One voter per directory and process: two backends of one process share it, and the last one to go closes it. */
import { invalid } from "../../kit/errors.js";
import type { Clock } from "../../seam/clock.js";
import { doubtOfDirectory } from "./doubts.js";
import { NodeJournalDisk } from "./node-disk.js";
import { RaftNode } from "./node.js";
import type { RaftConfig } from "./options.js";
import { Peering } from "./peering.js";
import { Lives } from "./transport/lives.js";

/** A share of a voter. */
export interface SharedNode {
  readonly node: RaftNode;
  readonly peering: Peering;
  release(): Promise<void>;
}

interface Running {
  readonly identity: string;
  readonly node: RaftNode;
  readonly peering: Peering;
  readonly started: Promise<void>;
  users: number;
}

const running = new Map<string, Running>();
/** Closing takes a moment, and the next one needs the same port and file. */
const ending = new Map<string, Promise<void>>();

export async function nodeOf(
  config: RaftConfig,
  clock: Clock,
  log: (line: string) => void,
): Promise<SharedNode> {
  const { self, dir, bind, cluster, list, secret, peers, dial } = config;
  if (self === undefined || dir === undefined || bind === undefined)
    throw invalid("only a voter has a journal");
  for (let end = ending.get(dir); end !== undefined; end = ending.get(dir)) await end;
  const identity = `${self.name} ${list}`;
  let found = running.get(dir);
  if (found !== undefined && found.identity !== identity)
    throw invalid(`${dir} is the directory of another voter of this process; each voter needs its own`);
  if (found === undefined) {
    const lives = new Lives(clock.uniqueId());
    const own = { name: self.name, voter: true, cluster, list, secret, lives };
    const peering = new Peering({ own, peers, dial, clock });
    const disk = new NodeJournalDisk(dir, `journal.${clock.uniqueId()}.new`);
    const node = new RaftNode({ self: self.name, bind, disk, peering, clock, log });
    const started = node.start().then(async () => {
      const doubt = await doubtOfDirectory(dir);
      if (doubt !== undefined) log(`voter "${self.name}": ${doubt}`);
    });
    found = { identity, node, peering, started, users: 0 };
    running.set(dir, found);
  }
  const { node, peering, started } = found;
  const here = found;
  here.users++;
  const release = async (): Promise<void> => {
    if (--here.users > 0) return;
    running.delete(dir);
    const end = node.close().finally(() => ending.delete(dir));
    ending.set(dir, end);
    peering.close();
    await end;
  };
  try {
    await started;
  } catch (error) {
    await release();
    throw error;
  }
  let released = false;
  return { node, peering, release: async () => (released ? undefined : ((released = true), release())) };
}
