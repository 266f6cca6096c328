/**
 * Elections in a directory of one machine: no server, nothing to install.
 */
import type { BackendWithRecords } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import { systemClock } from "../../kit/clock.js";
import { recordBackend } from "../../record/backend.js";
import { decodeLease, textLeases } from "../../record/codec.js";
import type { FileSystem } from "./fs.js";
import { GuardedDirectory, trusted } from "./guarded.js";
import { isLocal } from "./directory.js";
import { localFileSystem, nodeFileSystem } from "./node-fs.js";
import { ProcessRule } from "./processes.js";
import type { Durability } from "./store.js";
import { FileStore } from "./store.js";

export type { DirectoryOptions } from "./directory.js";
export type { FileRead, FileSystem } from "./fs.js";
export { defaultDirectory, openDirectory } from "./directory.js";

/** Where the files are, and how they are used. */
export interface FileBackendOptions {
  /** Where the records live. Default: `.local/state/conclave` in this user's home. */
  readonly directory?: string | undefined;
  /** Succeed a leader at once if its process is certainly dead, without waiting for its lease. Default true. */
  readonly deadProcessRule?: boolean | undefined;
  /**
   * Processes that must be dead too before the dead-process rule may speak, besides this one (those
   * that act on its behalf). Asked at every write.
   */
  readonly processes?: (() => readonly number[]) | undefined;
  /** Accept NFS, SMB, FUSE and the like. The guarantees of this backend do not hold there. */
  readonly allowNetworkFs?: boolean | undefined;
  readonly clock?: Clock | undefined;
  /** Another file system behind the same door; `directory` is then used as it is. */
  readonly fs?: FileSystem | undefined;
}

/** Small: what follows a wake is a few system calls on one machine. */
const WAKE_JITTER_MS = 2;

/** Elections in a directory of a local disk. */
export function fileBackend(options: FileBackendOptions = {}): BackendWithRecords {
  const clock = options.clock ?? systemClock;
  const fs = options.fs ?? (isLocal(options) ? localFileSystem : nodeFileSystem);
  const { directory, allowNetworkFs } = options;
  const root =
    options.fs === undefined
      ? new GuardedDirectory({ directory, allowNetworkFs })
      : trusted(directory ?? "/conclave");
  const rule = (options.deadProcessRule ?? true) ? new ProcessRule(options.processes) : undefined;
  const processes = rule?.usable ? rule : undefined;
  const leases = new FileStore({ fs, clock, root, durability: durabilityOfLease, processes });
  return recordBackend({
    name: "file",
    guarantees: {
      exclusion: "linearizable",
      expiry: "observer",
      token: "record",
      succession: "unordered",
      ttl: { minMs: 500, stepMs: 1 },
    },
    leases: textLeases(leases),
    records: new FileStore({ fs, clock, root, subdirectory: "records" }),
    clock,
    close: () => root.close(),
    // Numbers can come again in an older copy of the directory; but a write looks at what it is built on.
    uniqueVersions: true,
    wakeJitterMs: WAKE_JITTER_MS,
  });
}

/** Only the acquiring write hands out a token, so only its number must outlive the machine. */
function durabilityOfLease(record: string): Durability {
  return decodeLease(record).token === null ? "number" : "none";
}
