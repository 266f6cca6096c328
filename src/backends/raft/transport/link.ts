/** The way to one voter: connects when it is asked, again when it broke, and answers every question or says that none came. */
import { connect } from "node:net";
import type { Socket } from "node:net";
import { ConclaveError, describe } from "../../../kit/errors.js";
import { printable } from "../../../kit/printable.js";
import type { Clock, Timer } from "../../../seam/clock.js";
import type { Address } from "../address.js";
import { FRAME, FrameReader } from "./frames.js";
import { Caller } from "./handshake.js";
import type { Identity, Keyed } from "./handshake.js";

/** From connecting to the last frame of the handshake. */
const CONNECT_MS = 3_000;
const TICK_MS = 1_000;
/** So many ticks without a frame, and the connection is taken for dead. A process that was stopped does not tick. */
const DEAD_TICKS = 3;
const AGAIN_MS = 50;
const LONGEST_AGAIN_MS = 1_000;
const MOST_PENDING = 20_000;
/** A voter that does not read what it is sent. */
const MOST_UNSENT = 8 * 1024 * 1024;

interface Question {
  readonly id: number;
  readonly body: Buffer;
  readonly timer: Timer;
  answer(body: Buffer): void;
  fail(error: Error): void;
}

interface Open {
  readonly socket: Socket;
  keyed?: Keyed;
  silentTicks: number;
}

export class Link {
  readonly #own: Identity;
  readonly #to: string;
  readonly #address: Address;
  readonly #clock: Clock;
  readonly #pending = new Map<number, Question>();
  #unsent: Question[] = [];
  #open: Open | undefined;
  #tick: Timer | undefined;
  #again: Timer | undefined;
  #failures = 0;
  #nextId = 1;
  #closed = false;
  #lastError: Error | undefined;

  constructor(own: Identity, to: string, address: Address, clock: Clock) {
    this.#own = own;
    this.#to = to;
    this.#address = address;
    this.#clock = clock;
    own.lives?.onNewer((name, life) => {
      if (name === to && this.#open?.keyed !== undefined && this.#open.keyed.life !== life)
        this.#broken(this.#unavailable("it is there as another process"));
    });
  }

  get connected(): boolean {
    return this.#open?.keyed !== undefined;
  }

  ask(body: Buffer, limitMs: number): Promise<Buffer> {
    if (this.#closed)
      return Promise.reject(new ConclaveError("state", "this backend is closed; open a new one"));
    if (this.#pending.size + this.#unsent.length >= MOST_PENDING)
      return Promise.reject(
        new ConclaveError("unavailable", `voter "${this.#to}" leaves too many questions unanswered`),
      );
    return new Promise((resolve, reject) => {
      const id = this.#nextId++ >>> 0;
      const done = (): void => {
        timer.cancel();
        this.#pending.delete(id);
      };
      const question: Question = {
        id,
        body,
        timer: this.#clock.after(limitMs, () => question.fail(this.#timeout(limitMs))),
        answer: (answered) => {
          done();
          resolve(answered);
        },
        fail: (error) => {
          done();
          this.#unsent = this.#unsent.filter((other) => other !== question);
          reject(error);
        },
      };
      const { timer } = question;
      if (this.#open?.keyed !== undefined) this.#send(this.#open, question);
      else {
        this.#unsent.push(question);
        this.#connect();
      }
    });
  }

  close(): void {
    this.#closed = true;
    this.#again?.cancel();
    this.#broken(new ConclaveError("state", "this backend is closed"));
  }

  #timeout(limitMs: number): ConclaveError {
    const why =
      this.#lastError === undefined ? "" : `; the last connection failed: ${describe(this.#lastError)}`;
    return new ConclaveError(
      "timeout",
      `voter "${this.#to}" did not answer within ${Math.round(limitMs)} ms${why}`,
    );
  }

  #connect(): void {
    if (this.#open !== undefined || this.#again !== undefined || this.#closed) return;
    const { host, port } = this.#address;
    const socket = connect({ host, port, noDelay: true });
    const open: Open = { socket, silentTicks: 0 };
    this.#open = open;
    const reader = new FrameReader();
    const caller = new Caller(this.#own, this.#to, this.#clock);
    const late = this.#clock.after(CONNECT_MS, () => {
      if (open.keyed === undefined)
        this.#broken(this.#unavailable("the connection was not established in time"), open);
    });
    socket.on("connect", () => socket.write(caller.hello()));
    socket.on("data", (bytes) => {
      try {
        for (const frame of reader.push(bytes)) {
          if (open.keyed !== undefined) this.#take(open, frame);
          else this.#greet(open, caller, frame);
          if (this.#open !== open) return;
        }
      } catch (error) {
        this.#broken(this.#unavailable(describe(error)), open);
      }
    });
    socket.on("error", (error) => this.#broken(this.#unavailable(describe(error)), open));
    socket.on("close", () => {
      late.cancel();
      const why =
        open.keyed === undefined
          ? "it closed the connection during the greeting; do both have the same key?"
          : "it closed the connection";
      this.#broken(this.#unavailable(why), open);
    });
  }

  #greet(open: Open, caller: Caller, frame: Buffer): void {
    const step = caller.take(frame);
    if ("refused" in step)
      return this.#broken(new ConclaveError("invalid", printable(step.refused), { retriable: true }), open);
    if (step.send !== undefined) open.socket.write(step.send);
    if (!("keyed" in step)) return;
    open.keyed = step.keyed;
    this.#failures = 0;
    this.#lastError = undefined;
    const waiting = this.#unsent;
    this.#unsent = [];
    for (const question of waiting) this.#send(open, question);
    this.#tick = this.#clock.after(TICK_MS, () => this.#beat(open));
  }

  #take(open: Open, frame: Buffer): void {
    const { type, body } = open.keyed!.in.open(frame);
    open.silentTicks = 0;
    if (type !== FRAME.answer || body.length < 4) return;
    this.#pending.get(body.readUInt32BE(0))?.answer(body.subarray(4));
  }

  #send(open: Open, question: Question): void {
    this.#pending.set(question.id, question);
    const body = Buffer.alloc(4 + question.body.length);
    body.writeUInt32BE(question.id, 0);
    question.body.copy(body, 4);
    this.#write(open, FRAME.request, body);
  }

  #write(open: Open, type: number, body: Buffer): void {
    const { socket, keyed } = open;
    if (socket.writableLength > MOST_UNSENT)
      return this.#broken(this.#unavailable("it does not read what it is sent"), open);
    if (socket.writableCorked === 0) {
      // What is asked in one turn of the event loop travels in one packet.
      socket.cork();
      queueMicrotask(() => socket.uncork());
    }
    socket.write(keyed!.out.close(type, body));
  }

  /** Keep-alive of our own: the kernel's takes hours. */
  #beat(open: Open): void {
    if (this.#open !== open) return;
    if (open.silentTicks++ >= DEAD_TICKS)
      return this.#broken(this.#unavailable("it has not sent a byte for some seconds"), open);
    this.#write(open, FRAME.ping, Buffer.alloc(0));
    this.#tick = this.#clock.after(TICK_MS, () => this.#beat(open));
  }

  #unavailable(why: string): ConclaveError {
    return new ConclaveError("unavailable", `voter "${this.#to}" cannot be reached: ${why}`);
  }

  #broken(error: Error, open = this.#open): void {
    if (open === undefined || this.#open !== open) {
      if (this.#closed) for (const question of [...this.#unsent]) question.fail(error);
      return;
    }
    this.#open = undefined;
    this.#lastError = error;
    this.#tick?.cancel();
    open.socket.destroy();
    for (const question of [...this.#pending.values(), ...this.#unsent]) question.fail(error);
    if (this.#closed) return;
    const delay = Math.min(LONGEST_AGAIN_MS, AGAIN_MS * 2 ** Math.min(this.#failures++, 5));
    this.#again = this.#clock.after(delay * (0.5 + 0.5 * this.#clock.random()), () => {
      this.#again = undefined;
      if (this.#unsent.length > 0) this.#connect();
    });
  }
}
