/** One line of the table. */
export interface Row {
  readonly what: string;
  readonly result: string;
  /** The same, done by what people use today, where it can do it. */
  readonly beside?: string | undefined;
}

/** A bench yields its rows as it gets them. */
export type Bench = () => AsyncIterable<Row>;

export interface Summary {
  readonly median: number;
  readonly p99: number;
  readonly max: number;
  readonly count: number;
}

export function summarize(samples: readonly number[]): Summary {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { median: at(0.5), p99: at(0.99), max: at(1), count: sorted.length };
}

export function show({ median, p99, count }: Summary): string {
  return `median ${ms(median)}, p99 ${ms(p99)} (n = ${count})`;
}

function ms(value: number): string {
  return value < 10 ? `${value.toFixed(1)} ms` : `${Math.round(value)} ms`;
}

/** The parts of a bench that BENCH_PART lists; all of them without it. */
export function chosen<P extends { readonly name: string }>(parts: readonly P[]): readonly P[] {
  const wanted = process.env["BENCH_PART"]?.split(",");
  const unknown = wanted?.find((part) => !parts.some(({ name }) => name === part));
  if (unknown === undefined) return parts.filter(({ name }) => wanted?.includes(name) !== false);
  const names = parts.map(({ name }) => name).join(", ");
  throw new Error(`no part ${unknown} of this bench: BENCH_PART lists some of ${names}`);
}
