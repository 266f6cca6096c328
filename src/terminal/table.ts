/** The table of `status` and `observe --watch`: pure text, made to fit a terminal. */
import { printable } from "../kit/printable.js";
import { clockTime } from "./output.js";

export interface TableRow {
  readonly election: string;
  /** `undefined`: not known yet. `null`: nobody. */
  readonly leader: string | null | undefined;
  readonly token: string | null;
  /** Epoch milliseconds; `null`: not known. */
  readonly since: number | null;
  /** Operators have paused it: nobody new is elected. */
  readonly paused?: boolean;
  /** Changes of leader that are known; `null`: none is. Without it there is no such column. */
  readonly changes?: number | null;
  /** The store could not be asked. */
  readonly trouble: string | null;
}

const HEAD = ["ELECTION", "LEADER", "TOKEN", "SINCE", "CHANGES"] as const;
const GAP = "  ";

/** Lines no wider than `columns`, at most `rows` of them. */
export function tableLines(
  rows: readonly TableRow[],
  now: number,
  size: { readonly columns: number; readonly rows: number },
): string[] {
  const head = rows.some(({ changes }) => changes !== undefined) ? HEAD : HEAD.slice(0, -1);
  const cells = [head, ...rows.map((row) => cellsOf(row, now))];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => lengthOf(row[column]!))));
  const lines = cells.map((row) =>
    row
      .slice(0, head.length)
      .map((cell, column) => pad(cell, widths[column]!))
      .join(GAP),
  );
  const troubles = rows.flatMap(({ election, trouble }) =>
    trouble === null ? [] : [`${election}: ${trouble}`],
  );
  const all = [...lines, ...troubles.map(printable)];
  const most = Math.max(2, size.rows - 1);
  const shown = all.length > most ? [...all.slice(0, most - 1), `… and ${all.length - most + 1} more`] : all;
  return shown.map((line) => cut(line.trimEnd(), size.columns));
}

function cellsOf({ election, leader, paused, token, since, changes }: TableRow, now: number): string[] {
  const who = `${leader === undefined ? "?" : (leader ?? "nobody")}${paused === true ? " (paused)" : ""}`;
  const when = since === null ? "" : `${clockTime(since, false)} (${elapsed(now - since)})`;
  return [election, who, token ?? "", when, String(changes ?? "")].map(printable);
}

/** `12s`, `2m 10s`, `3h 2m`, `5d 3h` */
export function elapsed(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (minutes === 0) return `${seconds}s`;
  if (hours === 0) return `${minutes}m ${seconds % 60}s`;
  return hours < 48 ? `${hours}h ${minutes % 60}m` : `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

function lengthOf(text: string): number {
  return Array.from(text).length;
}

function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - lengthOf(text)));
}

function cut(text: string, columns: number): string {
  const chars = Array.from(text);
  return chars.length <= columns ? text : `${chars.slice(0, Math.max(0, columns - 1)).join("")}…`;
}
