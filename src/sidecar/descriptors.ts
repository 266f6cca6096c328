/**
 * How many connections the HTTP server may keep. Each one takes a file
 * descriptor of the process, and so does every request to the store: if clients
 * could take them all, renewals would fail with EMFILE and the term would end.
 */
import { readdirSync, readFileSync } from "node:fs";

const MOST_CONNECTIONS = 2048;
/** Each event stream keeps a connection. */
const MOST_STREAMS = 64;
/** With a file limit this low a probe must still get an answer. */
const FEWEST_CONNECTIONS = 8;
/** Where /proc does not say: the usual default limit, and what an idle Node process has open. */
const USUAL_LIMIT = 1024;
const USUAL_OPEN = 32;

export interface ConnectionLimits {
  readonly connections: number;
  /** Of those, how many may be event streams: they stay, so they must leave room for questions. */
  readonly streams: number;
}

/** `reserved`: descriptors that the rest of the process may need beyond those that are open now. */
export function connectionLimits(reserved: number): ConnectionLimits {
  const free = fileLimit() - openFiles() - reserved;
  const connections = Math.min(MOST_CONNECTIONS, Math.max(FEWEST_CONNECTIONS, free));
  return { connections, streams: Math.min(MOST_STREAMS, Math.floor(connections / 2)) };
}

/** The soft limit of this process. Node raises it to the hard limit when it starts. */
function fileLimit(): number {
  const soft = /^Max open files\s+(\d+)/m.exec(readProc("/proc/self/limits"))?.[1];
  return soft === undefined ? USUAL_LIMIT : Number(soft);
}

function readProc(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function openFiles(): number {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return USUAL_OPEN;
  }
}
