/**
 * Many watches on one stream. Each remembers the next revision it has not seen,
 * so that a broken stream is resumed, on whatever endpoint answers, without a
 * gap: either every event comes, or the watch is told that history is gone.
 */
import type { Clock, Timer } from "../../../core/clock.js";
import type { WatchNotice, WatchRequest } from "../client.js";
import type { GrpcStream } from "./connection.js";
import { EtcdError, statusError } from "./errors.js";
import {
  decodeWatchAnswer,
  encodeWatchCancel,
  encodeWatchCreate,
  encodeWatchProgress,
  type WatchAnswer,
} from "./messages.js";

const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 2_000;

interface Watch {
  readonly request: WatchRequest;
  readonly sink: (notice: WatchNotice) => void;
  /** First revision not yet seen. */
  next: bigint;
}

/** Opens the stream; `token` tells which credentials it was opened with. */
export interface WatchTransport {
  open(handlers: { message(bytes: Uint8Array): void; ended(error: EtcdError | undefined): void }): Promise<{
    readonly stream: GrpcStream;
    readonly who: string;
    readonly token: string | undefined;
  }>;
  /** The token a stream would be opened with now. */
  token(): Promise<string | undefined>;
}

type State =
  | { readonly kind: "idle" }
  | { readonly kind: "opening" }
  | {
      readonly kind: "open";
      readonly stream: GrpcStream;
      readonly who: string;
      readonly token: string | undefined;
    }
  | { readonly kind: "resting"; readonly timer: Timer };

export class Watches {
  readonly #transport: WatchTransport;
  readonly #clock: Clock;
  readonly #watches = new Map<bigint, Watch>();
  #lastId = 0n;
  #state: State = { kind: "idle" };
  #retryMs = FIRST_RETRY_MS;
  #closed = false;

  constructor(transport: WatchTransport, clock: Clock) {
    this.#transport = transport;
    this.#clock = clock;
  }

  add(request: WatchRequest, sink: (notice: WatchNotice) => void): () => void {
    if (this.#closed) throw new EtcdError("permanent", "state", "the etcd client is closed");
    const id = ++this.#lastId;
    const watch: Watch = { request, sink, next: request.startRevision };
    this.#watches.set(id, watch);
    if (this.#state.kind === "open") this.#state.stream.send(encodeWatchCreate(id, watch.request));
    else if (this.#state.kind === "idle") this.#open();
    return () => {
      if (!this.#watches.delete(id)) return;
      if (this.#state.kind === "open") this.#state.stream.send(encodeWatchCancel(id));
    };
  }

  /** Asks how far the server is. Its answer also proves that the stream is alive. */
  askProgress(): void {
    if (this.#state.kind === "open") this.#state.stream.send(encodeWatchProgress());
  }

  close(): void {
    this.#closed = true;
    this.#watches.clear();
    if (this.#state.kind === "open") this.#state.stream.close();
    if (this.#state.kind === "resting") this.#state.timer.cancel();
    this.#state = { kind: "idle" };
  }

  #open(): void {
    const opening: State = { kind: "opening" };
    this.#state = opening;
    let mine: State = opening;
    const current = (): boolean => this.#state === mine && !this.#closed;
    this.#transport
      .open({
        message: (bytes) => {
          if (current() && mine.kind === "open") this.#receive(decodeWatchAnswer(bytes), mine);
        },
        ended: () => {
          if (current()) this.#rest();
        },
      })
      .then(
        ({ stream, who, token }) => {
          if (!current()) return stream.close();
          mine = { kind: "open", stream, who, token };
          this.#state = mine;
          for (const [id, watch] of this.#watches) {
            stream.send(encodeWatchCreate(id, { ...watch.request, startRevision: watch.next }));
          }
        },
        () => {
          if (current()) this.#rest();
        },
      );
  }

  /** Waits, longer each time in vain, and opens the stream again if anybody still watches. */
  #rest(): void {
    if (this.#watches.size === 0) {
      this.#state = { kind: "idle" };
      return;
    }
    const delay = this.#retryMs * (0.5 + this.#clock.random());
    this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS);
    this.#state = { kind: "resting", timer: this.#clock.after(delay, () => this.#open()) };
  }

  #receive(answer: WatchAnswer, state: State & { kind: "open" }): void {
    this.#retryMs = FIRST_RETRY_MS;
    const watch = this.#watches.get(answer.id);
    if (watch === undefined) return;
    if (answer.compactRevision > 0n)
      return this.#finish(answer.id, watch, { kind: "compacted", revision: answer.compactRevision });
    if (answer.canceled) return this.#refused(answer, watch, state);
    if (answer.created) return;
    const last = answer.events.at(-1);
    // While a watch catches up, the header runs ahead of the events: only what was
    // delivered counts. Without events it is the server's word that there were none.
    const seen = last === undefined ? answer.revision : last.kv.modRevision;
    const events = answer.events.filter((event) => event.kv.modRevision >= watch.next);
    if (seen >= watch.next) watch.next = seen + 1n;
    if (events.length > 0) watch.sink({ kind: "events", events });
  }

  /** A refusal may be due to a token that aged while the stream lived: then a new stream is the cure. */
  #refused(answer: WatchAnswer, watch: Watch, state: State & { kind: "open" }): void {
    const error = statusError(
      7,
      answer.cancelReason === "" ? "watch cancelled" : answer.cancelReason,
      state.who,
    );
    if (state.token === undefined) return this.#finish(answer.id, watch, { kind: "failed", error });
    this.#transport.token().then(
      (token) => {
        if (token === state.token) return this.#finish(answer.id, watch, { kind: "failed", error });
        if (this.#state !== state) return;
        state.stream.close();
        this.#rest();
      },
      () => this.#finish(answer.id, watch, { kind: "failed", error }),
    );
  }

  #finish(id: bigint, watch: Watch, notice: WatchNotice): void {
    if (this.#watches.get(id) !== watch) return;
    this.#watches.delete(id);
    watch.sink(notice);
  }
}
