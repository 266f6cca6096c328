/**
 * Seeded chance, split into streams. Each (seed, label) has its own stream, so
 * that taking one fault out of a plan does not shift the draws of everything
 * else: without that, shrinking a failing plan would be a lottery.
 */

/** 32 bits from any text, well mixed (the finaliser of MurmurHash3 over FNV-1a). */
export function hash32(text: string, seed = 0): number {
  let hash = (0x811c9dc5 ^ seed) >>> 0;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** A small fast generator (sfc32), good enough to explore schedules; not for secrets. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number, label: string) {
    const low = seed | 0;
    const high = Math.floor(seed / 0x1_0000_0000) | 0;
    this.#a = hash32(label, low);
    this.#b = hash32(label, high ^ 0x9e3779b9);
    this.#c = low ^ 0x5bd1e995;
    for (let i = 0; i < 12; i++) this.#next32();
  }

  #next32(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** Uniform in [0, 1). */
  next(): number {
    return this.#next32() / 0x1_0000_0000;
  }

  /** Uniform in [low, high). */
  between(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  /** A whole number in [low, high], both included. */
  whole(low: number, high: number): number {
    return low + Math.floor((high - low + 1) * this.next());
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(choices: readonly [T, ...T[]]): T {
    return choices[Math.floor(this.next() * choices.length)] ?? choices[0];
  }

  /** Log-normal: `median` half the time or less, with a long right tail. */
  logNormal(median: number, sigma: number): number {
    const u = 1 - this.next();
    const v = this.next();
    return median * Math.exp(sigma * Math.sqrt(-2 * Math.log(u)) * Math.cos(2 * Math.PI * v));
  }

  hex(digits: number): string {
    let text = "";
    while (text.length < digits) text += this.#next32().toString(16).padStart(8, "0");
    return text.slice(0, digits);
  }
}
