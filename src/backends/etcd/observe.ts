/**
 * Follows the leader of an election. Every leader reported was read, with a
 * linearizable read, as the key with the lowest create revision; a watch only
 * says when to read again, or that the same leader has published a new value. So
 * the second candidate is never reported as leader, and compaction, reconnects
 * and changes of the cluster's leader cost an extra read but no wrong answer.
 */
import type { Leader, ObserveOptions } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import { onAbort } from "../../kit/wait.js";
import type { CallLimits, EtcdClient, KeyValue, WatchEvent, WatchNotice, WatchRequest } from "./client.js";

export interface ObserverContext {
  readonly client: EtcdClient;
  readonly clock: Clock;
  readonly range: { readonly key: string; readonly rangeEnd?: string };
  /** Who the candidate with this key is; throws if it is no candidate's. */
  readonly identify: (kv: KeyValue, limits: CallLimits) => Promise<string>;
}

export async function* observeLeader(
  context: ObserverContext,
  options: ObserveOptions,
): AsyncGenerator<Leader | null> {
  const { client, clock, range, identify } = context;
  const { signal, pollMs } = options;
  const limits = { signal, limitMs: options.attemptMs };
  while (!signal.aborted) {
    const read = { kind: "range", ...range, sort: "oldest-first", limit: 1 } as const;
    const answer = await client.transaction({ when: [], then: [read], otherwise: [] }, limits);
    let kv = answer.results[0]?.kvs[0];
    const candidate = kv === undefined ? "" : await identify(kv, limits);
    yield kv === undefined ? null : leaderFromKey(kv, candidate);
    const startRevision = answer.revision + 1n;
    const request: WatchRequest =
      kv === undefined ? { ...range, startRevision, skip: "deletes" } : { key: kv.key, startRevision };
    const mailbox = new Mailbox(client, clock, request, signal);
    try {
      // Only new values of the very key that leads are taken from the watch; all else is read again.
      for (;;) {
        const notice = await mailbox.next(pollMs * (0.75 + 0.25 * clock.random()));
        if (notice === undefined || notice.kind !== "events") break;
        const proclaimed = kv && newest(kv, notice.events);
        if (proclaimed === undefined) break;
        kv = proclaimed;
        yield leaderFromKey(kv, candidate);
      }
    } finally {
      mailbox.close();
    }
  }
}

function leaderFromKey(kv: KeyValue, candidate: string): Leader {
  return { candidate, token: kv.createRevision, value: kv.value };
}

/** The key's newest value, unless it was deleted meanwhile. */
function newest(kv: KeyValue, events: readonly WatchEvent[]): KeyValue | undefined {
  if (events.some((event) => event.type === "delete" || event.kv.createRevision !== kv.createRevision))
    return undefined;
  return events.at(-1)?.kv;
}

/** Collects what a watch reports between two reads, merged so that it stays small however long nobody reads. */
class Mailbox {
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  #notice: WatchNotice | undefined;
  readonly #unwatch: () => void;
  readonly #unlink: () => void;
  #arrived: (() => void) | undefined;

  constructor(client: EtcdClient, clock: Clock, request: WatchRequest, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
    this.#unwatch = client.watch(request, (notice) => {
      this.#notice = merged(this.#notice, notice);
      this.#arrived?.();
    });
    this.#unlink = onAbort(signal, () => this.#arrived?.());
  }

  /** `undefined`: nothing came within the limit, or the observer is leaving. */
  async next(limitMs: number): Promise<WatchNotice | undefined> {
    if (this.#notice === undefined && !this.#signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = this.#clock.after(limitMs, () => this.#arrived?.());
        this.#arrived = () => {
          timer.cancel();
          this.#arrived = undefined;
          resolve();
        };
      });
    }
    const notice = this.#notice;
    this.#notice = undefined;
    return notice;
  }

  close(): void {
    this.#unwatch();
    this.#unlink();
    this.#arrived?.();
  }
}

/** Of several new values the last; of anything else enough to see that the leader must be read again. */
function merged(before: WatchNotice | undefined, notice: WatchNotice): WatchNotice {
  if (before === undefined || notice.kind !== "events") return notice;
  if (before.kind !== "events") return before;
  const events = [...before.events, ...notice.events];
  const odd = events.find(
    ({ type, kv }) => type === "delete" || kv.createRevision !== events[0]?.kv.createRevision,
  );
  return { kind: "events", events: odd === undefined ? events.slice(-1) : [...events.slice(0, 1), odd] };
}
