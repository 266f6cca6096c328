/** How long nobody led although one and the same majority was up all the while. */
import type { Line } from "../../src/testing/race/history.js";
import type { Fleet } from "./fleet.js";

interface Stretch {
  readonly from: bigint;
  readonly to: bigint;
}

export interface Leaderless {
  readonly ms: number;
  /** The majority, as numbers of its voters. */
  readonly majority: string;
}

export function longestLeaderless(fleet: Fleet, history: readonly Line[]): Leaderless {
  const led = history
    .filter(({ ev, el }) => ev === "span" && el === fleet.election)
    .map(({ from, to }): Stretch => ({ from, to }))
    .sort((a, b) => (a.from < b.from ? -1 : 1));
  let longest: Leaderless = { ms: 0, majority: "" };
  for (const [majority, stretches] of upStretches(fleet))
    for (const { from, to } of stretches) {
      // The time before the first sign of a leader, between two, and after the last.
      let since = from;
      for (const span of [...led.filter((s) => s.to > from && s.from < to), { from: to, to }]) {
        const ms = Number((span.from - since) / 1_000_000n);
        if (ms > longest.ms) longest = { ms, majority };
        if (span.to > since) since = span.to;
      }
    }
  return longest;
}

function upStretches({ changes }: Fleet): Map<string, Stretch[]> {
  const found = new Map<string, Stretch[]>();
  const open = new Map<string, bigint>();
  const last = { at: changes.at(-1)?.at ?? 0n, majorities: [] };
  for (const { at, majorities } of [...changes, last]) {
    const up = new Set(majorities);
    for (const [majority, from] of open) {
      if (up.has(majority)) continue;
      open.delete(majority);
      found.set(majority, [...(found.get(majority) ?? []), { from, to: at }]);
    }
    for (const majority of up) if (!open.has(majority)) open.set(majority, at);
  }
  return found;
}
