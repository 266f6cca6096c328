/**
 * Watches the key just ahead of ours. The watch starts at the revision at which
 * the server creates it, not at that of our last read: etcd delivers new events
 * at once, but past ones only in batches. Changes between that read and the
 * start are not delivered, so the caller reads again once the watch is created.
 */
import type { Stop } from "../../kit/stop.js";
import type { EtcdClient, KeyValue } from "./client.js";
import type { CandidateKey } from "./candidate-key.js";

export class PredecessorWatch {
  readonly #client: EtcdClient;
  readonly #candidateKey: CandidateKey;
  readonly #signal: Stop;
  /** Create revision of the watched key. */
  #watched: bigint | undefined;
  #unwatch = (): void => {};

  constructor(client: EtcdClient, candidateKey: CandidateKey, signal: Stop) {
    this.#client = client;
    this.#candidateKey = candidateKey;
    this.#signal = signal;
  }

  /** Waits for a change of this key, or for anything else that wakes the candidate. */
  untilChanged(predecessor: KeyValue): Promise<void> {
    if (this.#watched !== predecessor.createRevision) this.#start(predecessor);
    return this.#candidateKey.untilWoken(this.#signal);
  }

  #start({ key, createRevision }: KeyValue): void {
    const candidateKey = this.#candidateKey;
    this.end();
    this.#watched = createRevision;
    candidateKey.predecessor = { key, createRevision };
    this.#unwatch = this.#client.watch({ key, skip: "puts" }, (notice) => {
      if (notice.kind === "failed") return candidateKey.fail(notice.error);
      if (notice.kind === "compacted") this.#watched = undefined; // the watch has ended
      candidateKey.wake(); // created, deleted or compacted: read again
    });
  }

  /** Called after the read that follows a wake: cancelling first would delay taking over. */
  end(): void {
    this.#unwatch();
    this.#unwatch = () => {};
    this.#watched = undefined;
    this.#candidateKey.predecessor = undefined;
  }
}
