/** What happened, as a hash (always) and as lines (on demand): two runs of one plan must agree in both. */
export class Trace {
  readonly lines: string[] | undefined;
  #high = 0x811c9dc5;
  #low = 0x9e3779b9;

  constructor(keepLines: boolean) {
    this.lines = keepLines ? [] : undefined;
  }

  note(time: number, text: string): void {
    this.number(time);
    for (let i = 0; i < text.length; i++) this.#mix(text.charCodeAt(i));
    this.lines?.push(`${(time / 1000).toFixed(4).padStart(9)} s  ${text}`);
  }

  number(value: number): void {
    this.#mix(Math.floor(value * 8));
  }

  get hash(): string {
    return (this.#high >>> 0).toString(16).padStart(8, "0") + (this.#low >>> 0).toString(16).padStart(8, "0");
  }

  #mix(value: number): void {
    this.#high = Math.imul(this.#high ^ value, 0x01000193);
    this.#low = Math.imul(this.#low + value, 0x85ebca6b) ^ (this.#low >>> 15);
  }
}
