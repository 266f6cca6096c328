/** `observe --watch`: one table, drawn again in place. */
import { systemClock } from "../kit/clock.js";
import { describe } from "../kit/errors.js";
import { Election } from "../election/election.js";
import type { Leader } from "../seam/backend.js";
import { onAbort, sleep } from "../kit/wait.js";
import { redact } from "../terminal/secrets.js";
import type { Store } from "./store.js";
import { tableLines } from "../terminal/table.js";
import type { TableRow } from "../terminal/table.js";

/** What of a terminal is needed. */
export interface Terminal {
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

export interface WatchOptions {
  readonly store: Store;
  /** The elections, asked for again and again: more may come. */
  readonly names: () => Promise<readonly string[]>;
  readonly retryMs: number | undefined;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
}

const REDRAW_MS = 1_000;
/** A fault that lasts is reported again sooner than this; that it is over is not reported. */
const TROUBLE_MS = 10_000;
const ESC = "\u001b[";

interface Watched {
  readonly election: Election;
  row: TableRow;
  troubledAt: number;
  readonly following: Promise<void>;
}

export async function watchTable(options: WatchOptions): Promise<void> {
  const { signal, terminal, names } = options;
  const watched = new Map<string, Watched>();
  const canvas = new Canvas(terminal);
  let wake = new AbortController();
  const changed = (): void => wake.abort();
  try {
    while (!signal.aborted) {
      for (const name of await names())
        if (!watched.has(name)) watched.set(name, watch(name, options, changed));
      const now = systemClock.now();
      const rows = [...watched.values()].map(({ row, troubledAt }) =>
        now - troubledAt > TROUBLE_MS ? { ...row, trouble: null } : row,
      );
      canvas.draw(
        tableLines(rows, systemClock.wall(), {
          columns: terminal.columns || 80,
          rows: terminal.rows || 24,
        }),
      );
      wake = new AbortController();
      const unlink = onAbort(signal, changed);
      await sleep(systemClock, REDRAW_MS, wake.signal);
      unlink();
    }
  } finally {
    canvas.close();
    await Promise.all(
      [...watched.values()].map(async ({ election, following }) => {
        await election.close();
        await following;
      }),
    );
  }
}

function watch(name: string, { store, retryMs, signal }: WatchOptions, changed: () => void): Watched {
  const election = new Election({ name, backend: store.backend, retryMs, allowUnfenced: true });
  const troubled = (error: unknown): void => {
    watched.troubledAt = systemClock.now();
    watched.row = { ...watched.row, trouble: redact(describe(error)) };
    changed();
  };
  const follow = async (): Promise<void> => {
    election.on("error", ({ error }) => troubled(error));
    for await (const leader of election.observe({ signal })) {
      watched.row = rowAfter(watched.row, leader, systemClock.wall());
      changed();
    }
  };
  const row: TableRow = {
    election: name,
    leader: undefined,
    token: null,
    since: null,
    changes: 0,
    trouble: null,
  };
  // `follow` begins with a wait, so that it never runs before this is assigned.
  const watched: Watched = {
    election,
    row,
    troubledAt: 0,
    following: Promise.resolve().then(follow).catch(troubled),
  };
  return watched;
}

function rowAfter(row: TableRow, leader: Leader | null, now: number): TableRow {
  const first = row.leader === undefined;
  const token = leader?.token.toString() ?? null;
  const news = first || token !== row.token;
  // The first one may have led for long, by its own clock; later ones since they were seen.
  const since = first ? (leader?.since ?? null) : now;
  return {
    election: row.election,
    leader: leader?.candidate ?? null,
    token,
    since: news ? since : row.since,
    changes: (row.changes ?? 0) + (first || !news ? 0 : 1),
    trouble: null,
  };
}

/** Lines that replace those drawn before. */
class Canvas {
  readonly #terminal: Terminal;
  #height = 0;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    terminal.write(`${ESC}?25l`);
  }

  draw(lines: readonly string[]): void {
    const back = this.#height > 0 ? `${ESC}${this.#height}A` : "";
    this.#terminal.write(`${back}\r${ESC}J${lines.map((line) => `${line}\n`).join("")}`);
    this.#height = lines.length;
  }

  close(): void {
    this.#terminal.write(`${ESC}?25h`);
  }
}
