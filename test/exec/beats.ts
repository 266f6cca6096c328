/** Heart beats of commands, and the one question about them: was there an instant at which two terms' commands lived? */
import { closeSync, openSync, readSync } from "node:fs";

/** From the first to the last beat of any process of one term. Nanoseconds of CLOCK_MONOTONIC. */
export interface Span {
  readonly host: string;
  readonly token: string;
  first: bigint;
  last: bigint;
  /** Last beat of each generation of the command's tree. */
  readonly generations: Map<string, bigint>;
}

export class Beats {
  readonly path: string;
  readonly spans = new Map<string, Span>();
  #offset = 0;
  #rest = "";

  constructor(path: string) {
    this.path = path;
    closeSync(openSync(path, "a"));
  }

  /** Reads what has been written since. */
  read(): void {
    const file = openSync(this.path, "r");
    const buffer = Buffer.alloc(1 << 16);
    for (let size = 1; size > 0;) {
      size = readSync(file, buffer, 0, buffer.length, this.#offset);
      this.#offset += size;
      const lines = (this.#rest + buffer.toString("latin1", 0, size)).split("\n");
      this.#rest = lines.pop()!;
      for (const line of lines) this.add(line);
    }
    closeSync(file);
  }

  /** `host token generation nanoseconds` */
  add(line: string): void {
    const [host, token, generation, text] = line.split(" ");
    const at = BigInt(text!);
    const span = this.spans.get(token!);
    if (span === undefined) {
      const generations = new Map([[generation!, at]]);
      this.spans.set(token!, { host: host!, token: token!, first: at, last: at, generations });
      return;
    }
    if (at < span.first) span.first = at;
    if (at > span.last) span.last = at;
    span.generations.set(generation!, at);
  }

  /** The newest term whose tree of `size` processes beats at this moment, all of it. */
  living(size: number): Span | undefined {
    this.read();
    const newest = this.inOrder().at(-1);
    if (newest === undefined || newest.generations.size < size) return undefined;
    const since = process.hrtime.bigint() - 500_000_000n;
    return [...newest.generations.values()].every((at) => at > since) ? newest : undefined;
  }

  inOrder(): Span[] {
    return [...this.spans.values()].toSorted((a, b) => (a.first < b.first ? -1 : 1));
  }

  /** Milliseconds during which commands of two terms lived, for every two terms; and the shortest time between two. */
  findOverlaps(): { overlaps: { a: Span; b: Span; ms: number }[]; shortestGapMs: number } {
    const spans = this.inOrder();
    const overlaps = [];
    let shortest: bigint | undefined;
    let end: Span | undefined;
    for (const span of spans) {
      if (end !== undefined) {
        const gap = span.first - end.last;
        if (gap <= 0n) overlaps.push({ a: end, b: span, ms: Number(-gap) / 1e6 });
        if (shortest === undefined || gap < shortest) shortest = gap;
      }
      if (end === undefined || span.last > end.last) end = span;
    }
    return { overlaps, shortestGapMs: Number(shortest ?? 0n) / 1e6 };
  }
}
