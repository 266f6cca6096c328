/** The beginning of a connection: who is there, and a proof that both have the key. Nothing is done for a peer before that. */
import type { Clock } from "../../../seam/clock.js";
import { FRAME, FrameError, openPlain, plain, sealsOf } from "./frames.js";
import type { Seal } from "./frames.js";
import { twinsOf } from "./lives.js";
import type { Lives } from "./lives.js";

/** What one side is, and expects of the other. */
export interface Identity {
  /** A voter's name; for others any name that is not a voter's. */
  readonly name: string;
  readonly voter: boolean;
  /** Hash of the list of voters. */
  readonly cluster: string;
  /** The list itself, for the message when they differ. */
  readonly list: string;
  /** The shared key, or what stands for it. */
  readonly secret: Buffer;
  /** Of a voter: how it finds out that another process has its name. */
  readonly lives?: Lives | undefined;
}

/** Both directions, ready to be used. */
export interface Keyed {
  readonly out: Seal;
  readonly in: Seal;
  readonly peer: string;
  readonly voter: boolean;
  /** Which start of a voter this is, if it says so. */
  readonly life?: string | undefined;
}

export type Step =
  | { readonly send: Buffer }
  | { readonly send?: Buffer | undefined; readonly keyed: Keyed }
  | { readonly send?: Buffer | undefined; readonly refused: string };

const LONGEST_NAME = 200;

interface Hello {
  readonly name: string;
  readonly voter: boolean;
  readonly to: string;
  readonly nonce: string;
}

function nonceOf(clock: Clock): string {
  return Array.from({ length: 4 }, () => clock.uniqueId()).join("");
}

function parse(body: Buffer): Record<string, unknown> {
  const value: unknown = JSON.parse(body.toString());
  if (typeof value !== "object" || value === null) throw new FrameError("a greeting that is none");
  return value as Record<string, unknown>;
}

/** What both say once they can seal it. */
function introduction({ cluster, list, lives }: Identity, twin = false): Buffer {
  return Buffer.from(
    JSON.stringify({ cluster, list, ...(lives && { life: lives.own }), ...(twin && { twin }) }),
  );
}

function lifeOf({ life }: Record<string, unknown>): string | undefined {
  return typeof life === "string" && life.length <= LONGEST_NAME ? life : undefined;
}

/** Whether a voter that was asked for its proof at that moment is the only one of its name, as far as is known. */
function isAlone({ lives }: Identity, name: string, life: string | undefined, asked: number): boolean {
  const met = lives === undefined || life === undefined ? "alone" : lives.meet(name, life, asked);
  if (met === "late") throw new FrameError("a proof that comes late, perhaps of a process that has ended");
  return met === "alone";
}

function helloOf(body: Buffer): Hello {
  const { name, voter, to, nonce } = parse(body);
  const short = (value: unknown): value is string =>
    typeof value === "string" && value.length <= LONGEST_NAME;
  if (!short(name) || !short(to) || !short(nonce) || nonce.length < 32 || typeof voter !== "boolean")
    throw new FrameError("a greeting that is none");
  return { name, voter, to, nonce };
}

/** Whoever connects. */
export class Caller {
  readonly #own: Identity;
  readonly #to: string;
  readonly #nonce: string;
  readonly #asked: number;
  #seals: { out: Seal; in: Seal } | undefined;

  constructor(own: Identity, to: string, clock: Clock) {
    this.#own = own;
    this.#to = to;
    this.#asked = own.lives?.moment() ?? 0;
    this.#nonce = nonceOf(clock);
  }

  hello(): Buffer {
    const { name, voter } = this.#own;
    return plain(FRAME.hello, Buffer.from(JSON.stringify({ name, voter, to: this.#to, nonce: this.#nonce })));
  }

  take(frame: Buffer): Step {
    const { name, secret, cluster, list } = this.#own;
    if (this.#seals === undefined) {
      const hello = helloOf(openPlain(frame, FRAME.hello));
      if (hello.name !== this.#to)
        return {
          refused: `"${hello.name}" answers where "${this.#to}" should be; check the addresses in the list`,
        };
      const seals = sealsOf({ secret, nonces: [this.#nonce, hello.nonce], names: [name, this.#to] });
      this.#seals = { out: seals.caller, in: seals.callee };
      return { send: this.#seals.out.close(FRAME.auth, introduction(this.#own)) };
    }
    const { body } = this.#seals.in.open(frame);
    const answer = parse(body);
    if (answer["cluster"] !== cluster)
      return {
        refused: `voter "${this.#to}" has another list of voters: ${String(answer["list"])}; this process has ${list}. All must have the same list`,
      };
    if (answer["twin"] === true) {
      this.#own.lives?.meetTwin();
      return { refused: twinsOf(name) };
    }
    const life = lifeOf(answer);
    if (!isAlone(this.#own, this.#to, life, this.#asked)) return { refused: twinsOf(this.#to) };
    return { keyed: { ...this.#seals, peer: this.#to, voter: true, life } };
  }
}

/** Whoever is connected to. */
export class Callee {
  readonly #own: Identity;
  readonly #voters: ReadonlySet<string>;
  readonly #nonce: string;
  readonly #asked: number;
  #hello: Hello | undefined;
  #seals: { out: Seal; in: Seal } | undefined;

  constructor(own: Identity, voters: ReadonlySet<string>, clock: Clock) {
    this.#own = own;
    this.#voters = voters;
    this.#asked = own.lives?.moment() ?? 0;
    this.#nonce = nonceOf(clock);
  }

  take(frame: Buffer): Step {
    const { name, secret, cluster, list } = this.#own;
    if (this.#seals === undefined || this.#hello === undefined) {
      const hello = helloOf(openPlain(frame, FRAME.hello));
      if (hello.to !== name || hello.voter !== this.#voters.has(hello.name))
        throw new FrameError("a greeting for somebody else");
      this.#hello = hello;
      const seals = sealsOf({ secret, nonces: [hello.nonce, this.#nonce], names: [hello.name, name] });
      this.#seals = { out: seals.callee, in: seals.caller };
      const greeting = { name, voter: true, to: hello.name, nonce: this.#nonce };
      return { send: plain(FRAME.hello, Buffer.from(JSON.stringify(greeting))) };
    }
    const asked = parse(this.#seals.in.open(frame).body);
    const { name: peer, voter } = this.#hello;
    const life = lifeOf(asked);
    const sameList = asked["cluster"] === cluster;
    const twin = sameList && voter && !isAlone(this.#own, peer, life, this.#asked);
    const send = this.#seals.out.close(FRAME.auth, introduction(this.#own, twin));
    if (!sameList)
      return {
        send,
        refused: `"${peer}" has another list of voters: ${String(asked["list"])}; this voter has ${list}`,
      };
    if (twin) return { send, refused: twinsOf(peer) };
    return { send, keyed: { ...this.#seals, peer, voter, life } };
  }
}
