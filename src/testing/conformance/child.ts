/** A candidate in a process of its own, known by what it writes (see probe.ts). */
import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { ConformanceFailure } from "./check.js";

type Soon = <T>(promise: Promise<T>, what: string, withinMs?: number) => Promise<T>;

/** From the first certain "yes" of a term to the last, in nanoseconds of the machine's clock. */
export interface Claim {
  readonly token: bigint;
  from: bigint;
  to: bigint;
}

const START_MS = 30_000;

export class Child {
  readonly claims: Claim[] = [];
  /** Exit code, or the signal that ended it. */
  readonly exited: Promise<number | string>;
  readonly #process: ChildProcess;
  readonly #soon: Soon;
  #news: (() => void)[] = [];
  #hello = false;
  #candidate: string | undefined;
  #over = false;
  #leading: bigint | undefined;

  constructor(process: ChildProcess, soon: Soon) {
    this.#process = process;
    this.#soon = soon;
    if (process.stdout === null) throw new ConformanceFailure("the child's standard output must be a pipe");
    const lines = createInterface({ input: process.stdout });
    lines.on("line", (line) => this.#take(line));
    this.exited = new Promise((resolve) => {
      process.on("error", () => resolve("could not be started"));
      process.on("close", (code, signal) => resolve(code ?? signal ?? "?"));
    });
    void this.exited.then(() => {
      this.#over = true;
      this.#tell();
    });
  }

  /** Its id, once it has said hello. */
  get candidate(): string | undefined {
    return this.#candidate;
  }

  /** The token it leads with now, by its own word. */
  get leading(): bigint | undefined {
    return this.#leading;
  }

  started(): Promise<void> {
    return this.#until(() => this.#hello, "the child must say hello", START_MS);
  }

  /** Waits until it leads. */
  async leads(withinMs: number): Promise<bigint> {
    await this.#until(() => this.#leading !== undefined, "the child must come into leadership", withinMs);
    return this.#leading!;
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name);
  }

  /** Ends it for certain, stopped or not, and waits until it is gone. */
  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.exited;
  }

  #until(happened: () => boolean, what: string, withinMs: number): Promise<void> {
    const waiting = async (): Promise<void> => {
      while (!happened()) {
        if (this.#over) throw new ConformanceFailure(`${what}, but it ended (${await this.exited})`);
        await new Promise<void>((resolve) => this.#news.push(resolve));
      }
    };
    return this.#soon(waiting(), what, withinMs);
  }

  #take(line: string): void {
    const event = JSON.parse(line) as {
      ev: string;
      inc?: string;
      token?: string;
      from?: string;
      to?: string;
    };
    if (event.ev === "hello") [this.#hello, this.#candidate] = [true, event.inc];
    if (event.ev === "leading") this.#leading = BigInt(event.token!);
    if (event.ev === "stopped" && this.#leading === BigInt(event.token!)) this.#leading = undefined;
    if (event.ev === "span") this.#claim(BigInt(event.token!), BigInt(event.from!), BigInt(event.to!));
    this.#tell();
  }

  #claim(token: bigint, from: bigint, to: bigint): void {
    const known = this.claims.find((claim) => claim.token === token);
    if (known === undefined) this.claims.push({ token, from, to });
    else if (to > known.to) known.to = to;
  }

  #tell(): void {
    const waiting = this.#news;
    this.#news = [];
    for (const resolve of waiting) resolve();
  }
}
