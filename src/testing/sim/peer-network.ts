/** Messages between voters: each may be late, lost, doubled, overtaken or cut off, in one direction and not in the other. */
import { Peering } from "../../backends/raft/peering.js";
import { decodeAnswer, decodeRequest, encode } from "../../backends/raft/transport/wire.js";
import type { Answer, Request } from "../../backends/raft/transport/wire.js";
import { ConclaveError } from "../../kit/errors.js";
import type { SimClock } from "./clock.js";
import type { Trouble } from "./network.js";
import type { SimProcess } from "./node.js";
import type { Plan } from "./plan.js";
import type { Random } from "./random.js";
import type { Scheduler } from "./scheduler.js";

/** One end of a connection. */
export interface Station {
  readonly trouble: Trouble;
  readonly process: SimProcess;
}

/** A voter, as others reach it. */
export interface Listener extends Station {
  readonly handle: (request: Request) => Promise<Answer>;
}

const LOSS = 0.4;
const TAIL = 0.3;
const DUPLICATE = 0.3;
/** How often whoever asks a process that is not there is told so at once. */
const REFUSED = 0.7;

export class PeerNetwork {
  readonly listeners = new Map<string, Listener>();
  /** Until when messages from one machine to another are lost, by both names. */
  readonly #cuts = new Map<string, number>();

  constructor(
    readonly scheduler: Scheduler,
    readonly plan: Plan,
    readonly random: Random,
  ) {}

  cut(from: string, to: string, untilTime: number): void {
    this.#cuts.set(`${from} ${to}`, untilTime);
  }

  /** `settle` may be called twice, or never. */
  request(from: Station, to: string, request: Request, settle: (answer: Answer | "refused") => void): void {
    const { duplicate } = this.plan;
    const twice = this.scheduler.now < from.trouble.duplicate ? DUPLICATE : duplicate;
    const copies = this.random.next() < (this.#healthy ? 0 : twice) ? 2 : 1;
    const bytes = encode(request);
    for (let copy = 0; copy < copies; copy++) this.#request(from, to, bytes, settle);
  }

  #request(
    from: Station,
    to: string,
    bytes: ReturnType<typeof encode>,
    settle: (answer: Answer | "refused") => void,
  ): void {
    const origin = from.process.node.id;
    const back = (trouble: Trouble, answer: Answer | "refused"): void =>
      this.#send(trouble, from.trouble, `${to} ${origin}`, () => from.process.deliver(() => settle(answer)));
    const there = this.listeners.get(to)?.trouble;
    this.#send(from.trouble, there, `${origin} ${to}`, () => {
      const listener = this.listeners.get(to);
      const refused = this.random.next() < REFUSED;
      if (listener === undefined || !listener.process.alive) {
        if (refused && there !== undefined) back(there, "refused");
        return;
      }
      listener.process.deliver(() => {
        const request = decodeRequest(bytes);
        if (request === undefined) throw new Error(`a request cannot be read: ${String(bytes)}`);
        listener.handle(request).then(
          (answer) => {
            const read = decodeAnswer(encode(answer));
            if (read === undefined) throw new Error(`an answer cannot be read: ${String(encode(answer))}`);
            back(listener.trouble, read);
          },
          () => back(listener.trouble, "refused"),
        );
      });
    });
  }

  #send(from: Trouble, to: Trouble | undefined, way: string, arrive: () => void): void {
    const { plan, scheduler, random } = this;
    const { now } = scheduler;
    const roll = random.next();
    const delayMs = this.#delay(now < from.delay || now < (to?.delay ?? 0));
    const lossy = now < from.loss || now < (to?.loss ?? 0) ? LOSS : plan.loss.request;
    if (!this.#healthy && (now < from.requestsCut || now < (this.#cuts.get(way) ?? 0) || roll < lossy))
      return;
    scheduler.at(now + delayMs, () => {
      if (this.#healthy || scheduler.now >= (to?.answersCut ?? 0)) arrive();
    });
  }

  get #healthy(): boolean {
    return this.scheduler.now >= this.plan.healAtMs;
  }

  #delay(troubled: boolean): number {
    const { latency, ttlMs, healAtMs } = this.plan;
    const { random, scheduler } = this;
    const base = random.logNormal(latency.medianMs, latency.sigma);
    const roll = random.next();
    const extra = random.next() * (random.next() < 0.5 ? ttlMs / 2 : latency.tailMaxMs);
    if (this.#healthy || roll >= (troubled ? TAIL : latency.tail)) return base;
    return Math.min(base + extra, Math.max(1, healAtMs - scheduler.now));
  }
}

const OWN = { voter: true, cluster: "sim", list: "sim", secret: Buffer.alloc(32) };

/** All links of one process, which lead through the simulated network. */
export class SimPeering extends Peering {
  /** Told of every request that goes to another process. */
  onCall: ((what: string) => void) | undefined;
  readonly #network: PeerNetwork;
  readonly #station: Station;
  readonly #clock: SimClock;
  readonly #calls = new Set<(error: Error) => void>();
  #closed = false;

  constructor(network: PeerNetwork, station: Station, names: readonly string[], clock: SimClock) {
    const peers = names.map((name) => ({ name, host: "sim", port: 1 }));
    super({ own: { ...OWN, name: station.process.node.id }, peers, clock });
    this.#network = network;
    this.#station = station;
    this.#clock = clock;
  }

  /** Requests that were sent and not answered. */
  get pending(): number {
    return this.#calls.size;
  }

  override ask(voter: string, request: Request, limitMs: number): Promise<Answer> {
    if (this.#closed) return Promise.reject(new ConclaveError("state", "this link is closed"));
    this.onCall?.(request.kind);
    return new Promise((resolve, reject) => {
      const fail = (error: Error): void => {
        if (!this.#calls.delete(fail)) return;
        timer.cancel();
        reject(error);
      };
      const timer = this.#clock.after(limitMs, () =>
        fail(new ConclaveError("timeout", `voter "${voter}" did not answer within ${limitMs} ms`)),
      );
      this.#calls.add(fail);
      this.#network.request(this.#station, voter, request, (answer) => {
        if (answer === "refused") return fail(new ConclaveError("unavailable", `"${voter}" is not there`));
        if (!this.#calls.delete(fail)) return;
        timer.cancel();
        resolve(answer);
      });
    });
  }

  override byReach(): string[] {
    const own = this.#station.process.node.id;
    const there = (name: string): boolean => this.#network.listeners.get(name)?.process.alive === true;
    const others = this.names.filter((name) => name !== own);
    return [...others.filter(there), ...others.filter((name) => !there(name))];
  }

  override close(): void {
    this.#closed = true;
    for (const fail of [...this.#calls]) fail(new ConclaveError("state", "this link is closed"));
  }
}
