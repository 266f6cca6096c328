/**
 * Many watches on one stream. Each remembers the next revision it has not seen,
 * so that a broken stream is resumed, on whatever endpoint answers, without a
 * gap: either every event comes, or the watch is told that history is gone.
 */
import type { Clock, Timer } from "../../../seam/clock.js";
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
/** What is not urgent is sent this much later, so that it does not delay the transaction that follows. */
const LATER_MS = 5;
/** With thousands of them, others get their turn in between. */
const LATER_AT_ONCE = 250;

interface Watch {
  readonly request: WatchRequest;
  readonly sink: (notice: WatchNotice) => void;
  /** First revision not yet seen; unknown until the server says where it begins. */
  next: bigint | undefined;
  /** It was refused, or might have been, with a token that has been given up since: the next refusal counts. */
  lastChance: boolean;
}

/** Opens the stream; `token` tells which credentials it was opened with. */
export interface WatchTransport {
  open(handlers: { message(bytes: Uint8Array): void; ended(error: EtcdError | undefined): void }): Promise<{
    readonly stream: GrpcStream;
    readonly who: string;
    readonly token: string | undefined;
  }>;
  /** This token, or none, is no good any more: the next stream needs another. `false`: there is no other. */
  invalidate(token: string | undefined): boolean;
}

type State =
  | { readonly kind: "idle" }
  | { readonly kind: "opening" }
  | {
      readonly kind: "open";
      readonly stream: GrpcStream;
      readonly who: string;
      readonly token: string | undefined;
      /** Asked for on this stream and not answered yet, in order. */
      readonly asked: Set<bigint>;
    }
  | { readonly kind: "waiting"; readonly timer: Timer };

type Open = State & { readonly kind: "open" };

export class Watches {
  readonly #transport: WatchTransport;
  readonly #clock: Clock;
  readonly #watches = new Map<bigint, Watch>();
  #lastId = 0n;
  #state: State = { kind: "idle" };
  #retryMs = FIRST_RETRY_MS;
  /** Ended here, and the server does not know it yet. */
  readonly #cancelled: bigint[] = [];
  /** Begun here, and the server does not know it yet. */
  readonly #unasked = new Set<bigint>();
  #later: Timer | undefined;
  #closed = false;

  constructor(transport: WatchTransport, clock: Clock) {
    this.#transport = transport;
    this.#clock = clock;
  }

  add(request: WatchRequest, sink: (notice: WatchNotice) => void): () => void {
    if (this.#closed) throw new EtcdError("permanent", "state", "the etcd client is closed");
    const id = ++this.#lastId;
    const watch: Watch = { request, sink, next: request.startRevision, lastChance: false };
    this.#watches.set(id, watch);
    if (this.#state.kind === "idle") this.#open();
    else if (this.#state.kind === "open" && request.unhurried === true) this.#askLater(id);
    else if (this.#state.kind === "open") this.#ask(id, watch, this.#state);
    return () => {
      if (this.#watches.delete(id) && !this.#unasked.delete(id)) this.#cancel(id);
    };
  }

  /** Asks how far the server is. Its answer also proves that the stream is alive. */
  askProgress(): void {
    if (this.#state.kind === "open") this.#state.stream.send(encodeWatchProgress());
  }

  close(): void {
    this.#closed = true;
    this.#later?.cancel();
    this.#watches.clear();
    if (this.#state.kind === "open") this.#state.stream.close();
    if (this.#state.kind === "waiting") this.#state.timer.cancel();
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
          if (current()) this.#retryLater();
        },
      })
      .then(
        ({ stream, who, token }) => {
          if (!current()) return stream.close();
          const opened: Open = { kind: "open", stream, who, token, asked: new Set() };
          mine = opened;
          this.#state = opened;
          this.#unasked.clear();
          for (const [id, watch] of this.#watches) this.#ask(id, watch, opened);
        },
        (error: unknown) => {
          if (!current()) return;
          if (error instanceof EtcdError && error.code === "forbidden") this.#denied(error);
          this.#retryLater();
        },
      );
  }

  /** Our credentials are refused. The first refusal is retried; a second one in a row ends the watches. */
  #denied(error: EtcdError): void {
    for (const [id, watch] of [...this.#watches]) {
      if (watch.lastChance) this.#finish(id, watch, { kind: "failed", error });
      watch.lastChance = true;
    }
  }

  /** Waits, longer each time in vain, and opens the stream again if anybody still watches. */
  #retryLater(): void {
    if (this.#watches.size === 0) {
      this.#state = { kind: "idle" };
      return;
    }
    const delay = this.#retryMs * (0.5 + this.#clock.random());
    this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS);
    this.#state = { kind: "waiting", timer: this.#clock.after(delay, () => this.#open()) };
  }

  #ask(id: bigint, watch: Watch, { stream, asked }: Open): void {
    asked.add(id);
    stream.send(encodeWatchCreate(id, watch.request, watch.next));
  }

  #askLater(id: bigint): void {
    this.#unasked.add(id);
    this.#sendLater();
  }

  #cancel(id: bigint): void {
    if (this.#state.kind !== "open") return;
    this.#cancelled.push(id);
    this.#sendLater();
  }

  #sendLater(): void {
    this.#later ??= this.#clock.after(LATER_MS, () => {
      this.#later = undefined;
      if (this.#state.kind !== "open") return void this.#cancelled.splice(0); // they ended with the stream
      let left = LATER_AT_ONCE;
      for (const id of this.#unasked) {
        if (left-- === 0) break;
        this.#unasked.delete(id);
        const watch = this.#watches.get(id);
        if (watch !== undefined) this.#ask(id, watch, this.#state);
      }
      for (const gone of this.#cancelled.splice(0, LATER_AT_ONCE))
        this.#state.stream.send(encodeWatchCancel(gone));
      if (this.#cancelled.length + this.#unasked.size > 0) this.#sendLater();
    });
  }

  #receive(answer: WatchAnswer, state: Open): void {
    const id = answer.created ? answered(answer, state) : answer.id;
    const watch = this.#watches.get(id);
    if (watch !== undefined && isAbsurd(answer, watch)) {
      this.#retryLater(); // a broken server: not in a tight loop
      return state.stream.close();
    }
    this.#retryMs = FIRST_RETRY_MS;
    if (watch === undefined) return;
    if (answer.compactRevision > 0n)
      return this.#finish(id, watch, { kind: "compacted", revision: answer.compactRevision });
    if (answer.canceled) return this.#refused(id, answer.cancelReason, watch, state);
    if (answer.created) return created(watch, answer.revision);
    if (watch.next === undefined) return; // it has not begun, so this is not its
    const last = answer.events.at(-1);
    // While a watch catches up, the header runs ahead of the events: only what was
    // delivered counts. Without events it is the server's word that there were none.
    const seen = last === undefined ? answer.revision : last.kv.modRevision;
    const { next } = watch;
    const events = answer.events.filter((event) => event.kv.modRevision >= next);
    if (seen >= next) watch.next = seen + 1n;
    if (events.length > 0) watch.sink({ kind: "events", events });
  }

  /**
   * A refusal may be due to a token that aged while the stream lived, or that the
   * server forgot in a restart, or to none at all if authentication was switched on
   * meanwhile; older servers call all of them "permission denied". So
   * once more with a new token and a new stream, and only then does the watch fail.
   */
  #refused(id: bigint, reason: string, watch: Watch, state: Open): void {
    if (watch.lastChance || !this.#transport.invalidate(state.token)) {
      const error = statusError(7, reason === "" ? "watch cancelled" : reason, state.who, [
        state.token ?? "",
      ]);
      return this.#finish(id, watch, { kind: "failed", error });
    }
    watch.lastChance = true;
    for (const waiting of state.asked) {
      const other = this.#watches.get(waiting);
      if (other !== undefined) other.lastChance = true;
    }
    this.#retryLater();
    state.stream.close();
  }

  #finish(id: bigint, watch: Watch, notice: WatchNotice): void {
    if (this.#watches.get(id) !== watch) return;
    this.#watches.delete(id);
    watch.sink(notice);
  }
}

/** A compaction below the revision a watch waits for cannot concern it: the server is broken. */
function isAbsurd({ compactRevision }: WatchAnswer, { next }: Watch): boolean {
  return compactRevision > 0n && next !== undefined && compactRevision <= next;
}

/** The server has created the watch. */
function created(watch: Watch, revision: bigint): void {
  watch.lastChance = false;
  if (watch.next !== undefined) return;
  watch.next = revision + 1n;
  watch.sink({ kind: "created", revision });
}

/** Whose answer this is. They come in the order of the questions; newer servers give a refused watch no id. */
function answered({ id }: WatchAnswer, { asked }: Open): bigint {
  const [first] = asked;
  const whose = id < 0n && first !== undefined ? first : id;
  asked.delete(whose);
  return whose;
}
